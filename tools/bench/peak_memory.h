// The most memory the process held since a moment of one's choice.
#pragma once

#include <cstdint>

namespace medusa {

/// From now on peak_memory() counts. Where the system has no such reset (other than Linux, or
/// without the right), peak_memory() goes on counting from the start of the process.
void reset_peak_memory();

/// Bytes in main memory at the worst moment, files that are mapped included; 0: not known. Memory
/// of a GPU is not in it.
int64_t peak_memory();

}  // namespace medusa
