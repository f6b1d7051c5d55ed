// The bytes of a GGUF file -> its directory, all of it checked, and which part of a model in
// several files it is. For the sources of GgufFile alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/formats/gguf_file.h"

namespace medusa {

struct GgufDirectory {
  uint32_t version = 0;
  std::vector<GgufEntry> entries;
  std::vector<GgufTensor> tensors;
};

/// @param bytes  the whole file; the result points into it.
/// @param path   stands in the messages.
/// @throws UserError  as the constructor of GgufFile.
GgufDirectory parse_gguf(std::span<const uint8_t> bytes, const std::filesystem::path& path);

/// Reads an entry that parse_gguf() made. Returns nullptr, or what had been expected ("an integer")
/// if the entry is of another type; then value is not changed.
const char* read_gguf_value(const GgufEntry& entry, int64_t& value);
const char* read_gguf_value(const GgufEntry& entry, double& value);
const char* read_gguf_value(const GgufEntry& entry, bool& value);
const char* read_gguf_value(const GgufEntry& entry, std::string& value);
const char* read_gguf_value(const GgufEntry& entry, std::vector<int64_t>& value);
const char* read_gguf_value(const GgufEntry& entry, std::vector<double>& value);
const char* read_gguf_value(const GgufEntry& entry, std::vector<bool>& value);
const char* read_gguf_value(const GgufEntry& entry, std::vector<std::string>& value);

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
