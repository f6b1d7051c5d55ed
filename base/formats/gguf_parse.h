// The bytes of a GGUF file -> its directory, all of it checked. Used by gguf_file.cpp alone.
#pragma once

#include <cstdint>
#include <filesystem>
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

}  // namespace medusa
