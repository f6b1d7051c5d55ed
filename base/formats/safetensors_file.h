// The safetensors container: named arrays in one file behind a JSON header. Reading maps the file
// and checks the whole header first; writing gives the same bytes for the same content.
// Format: 8 bytes header length (little-endian), the JSON header, then the data without holes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace medusa {

/// One array of the file. It does not own its bytes.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;           // as the format spells it: "F32", "BF16", "I64", …
  std::vector<int64_t> shape;  // outermost first; empty: a single number
  std::span<const uint8_t> bytes;
};

/// Bytes of one element of a dtype; 0 for a name the format does not have.
int64_t safetensors_item_size(std::string_view dtype);

/// A mapped file. Entries point into it and live as long as it does.
///
/// Thread safety: const calls may run at the same time.
class SafetensorsFile {
 public:
  /// @throws UserError  the file is missing, is not safetensors, or its header contradicts itself
  ///                    or the file: sizes, offsets, overlaps, holes, repeated names.
  explicit SafetensorsFile(const std::filesystem::path& path);

  /// Sorted by name.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }

  /// Null if there is none of this name.
  const SafetensorsEntry* find(std::string_view name) const;

  /// The free-form texts of the header.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  MappedFile file_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Writes the entries; the file is there whole or as it was before. The header lists names in
/// order; the data is laid out by element size, then name, so that every array is aligned.
/// @param entries  in any order; names differ, sizes agree with shape and dtype.
/// @throws UserError  the folder cannot be written or the disk is full.
void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsEntry> entries,
                       const std::map<std::string, std::string>& metadata);

}  // namespace medusa
