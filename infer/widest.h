// For loops over a row of logits: one binary runs on every x86-64, and the loader picks the widest
// version of a function that the processor has.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MEDUSA_WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MEDUSA_WIDEST
#endif
