// What only a bug of ours can break. On in every build.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace medusa::detail {

template <typename... Values>
[[noreturn]] void assertion_failed(const char* file, int line, const char* condition,
                                   const Values&... values) {
  std::ostringstream text;
  text << file << ":" << line << ": assertion failed: " << condition;
  ((text << ", " << values), ...);
  throw std::logic_error(text.str());
}

}  // namespace medusa::detail

/// MEDUSA_ASSERT(parent < node, parent, node) throws std::logic_error with the place and the
/// values.
#define MEDUSA_ASSERT(condition, ...)                                            \
  do {                                                                           \
    if (!(condition)) [[unlikely]]                                               \
      ::medusa::detail::assertion_failed(__FILE__, __LINE__,                     \
                                         #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
