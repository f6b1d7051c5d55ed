// How much main memory the process holds now.
#pragma once

#include <cstdint>
#include <string>

namespace medusa {

/// Bytes, files that are mapped and were touched included; 0: not known.
int64_t memory_in_use();

/// Gives the system what the process has freed and malloc still holds: between tensors that stay,
/// gaps of those that came and went add up. Takes a tenth of a second for a gigabyte.
void give_back_freed_memory();

/// "1.2 GB", or "-" where it is not known.
std::string memory_text(int64_t bytes);

}  // namespace medusa
