// A model in several GGUF files: which part a file is, and where the others are. Used by
// gguf_file.cpp alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/formats/gguf_file.h"

namespace medusa {

/// What the first part says of the model's parts.
struct GgufSplit {
  int64_t count = 1;                   // of the parts; 1: the model is not split
  std::optional<int64_t> num_tensors;  // of all parts together
};

/// @param path  of the file that has these entries.
/// @throws UserError  it is not the first part, or is not named as one.
GgufSplit read_gguf_split(const std::vector<GgufEntry>& entries, const std::filesystem::path& path);

/// @param first  of the first part, named name-00001-of-0000N.gguf.
/// @param index  from 0.
/// @throws UserError  there is no such file.
std::filesystem::path gguf_part(const std::filesystem::path& first, int64_t index,
                                const GgufSplit& split);

/// @throws UserError  the file's own entries do not say that it is this part.
void check_gguf_part(const std::vector<GgufEntry>& entries, const std::filesystem::path& path,
                     int64_t index, const GgufSplit& split);

}  // namespace medusa
