// What memory and disk are free, for what a command says before it takes hours.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace medusa {

/// Bytes that the system would give without swapping; 0: not known.
int64_t available_memory();

/// Free bytes of the disk that the folder is on or will be; nothing: not known.
std::optional<int64_t> free_disk(const std::filesystem::path& folder);

/// "640 MB", "1.2 GB", in powers of ten.
std::string bytes_text(int64_t bytes);

}  // namespace medusa
