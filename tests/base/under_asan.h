// MEDUSA_ASAN is defined where AddressSanitizer watches: its own malloc keeps what is freed, so
// tests that weigh memory leave themselves out.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define MEDUSA_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEDUSA_ASAN
#endif
#endif
