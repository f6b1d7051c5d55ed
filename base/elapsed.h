// How long something has taken.
#pragma once

#include <chrono>

namespace medusa {

/// @returns  seconds of wall-clock time.
inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Seconds since a moment before the program began.
inline double seconds_now() { return seconds_since({}); }

}  // namespace medusa
