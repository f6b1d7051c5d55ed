// Reads the GGUF container, versions 2 and 3: metadata and where each tensor lies.
//
// Does not interpret either: what the keys mean and how a quantized block becomes numbers is known
// above. Layout: header, metadata (key, type, value), tensor directory, then the tensors' bytes
// at multiples of the alignment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/formats/ggml_type.h"

namespace medusa {

/// The values are the ids of the file format.
enum class GgufValueType : uint32_t {
  U8 = 0,
  I8 = 1,
  U16 = 2,
  I16 = 3,
  U32 = 4,
  I32 = 5,
  F32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  U64 = 10,
  I64 = 11,
  F64 = 12,
};

/// One metadata entry; everything points into the mapped file.
struct GgufEntry {
  std::string_view key;
  GgufValueType type;            // of the elements, if is_array; never Array
  bool is_array;                 // arrays of arrays are refused
  int64_t count;                 // elements; 1 if not is_array
  std::span<const uint8_t> raw;  // count elements; a string is its length (8 bytes) and its bytes
};

struct GgufTensor {
  std::string_view name;
  GgmlType type;
  std::vector<int64_t> dims;  // 1 to 4 sizes, each >= 1, the fastest first: {columns, rows, …}
  int64_t offset;             // of the first byte, from the start of its file
  int64_t bytes;
  size_t part = 0;  // which of GgufFile::parts() it lies in

  int64_t num_elements() const;
};

/// An open file. All of it is checked by the constructor, so that nothing below can reach outside
/// the file: counts, lengths, types, alignment, and that tensors lie inside it without overlap.
///
/// A model that was split (`split.count`) is opened by its first part, name-00001-of-00003.gguf:
/// its metadata are that part's, its tensors those of all parts, which lie beside it.
///
/// Memory is a few words per key and tensor; arrays and tensors are read where they lie.
/// Views and spans live as long as the object. Thread safety: const calls may run at the same time.
class GgufFile {
 public:
  /// @throws UserError  missing, empty, cut short, not a GGUF file, of a version or with a tensor
  ///                    type that we do not read, or inconsistent; a part that is not the first, or
  ///                    whose others are missing or do not belong to it.
  explicit GgufFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return files_[0].path(); }
  /// The files that it is in, path() first; one, unless the model was split.
  std::vector<std::filesystem::path> parts() const;
  uint32_t version() const { return version_; }

  /// In the order of the file.
  const std::vector<GgufEntry>& entries() const { return entries_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

  /// The value of a key as T: int64_t (any integer type), double (any number), bool, std::string,
  /// or std::vector of int64_t, double, bool or std::string.
  /// @throws UserError  it is there with another type, or does not fit.
  template <typename T>
  std::optional<T> find(std::string_view key) const;

  /// The same for a key that must be there.
  /// @throws UserError  also if it is missing.
  template <typename T>
  T required(std::string_view key) const;

  bool has(std::string_view key) const { return find_entry(key) != nullptr; }

  /// nullptr if there is none of that name.
  const GgufTensor* find_tensor(std::string_view name) const;
  const GgufTensor& required_tensor(std::string_view name) const;

  /// A tensor's bytes, aligned as the file says (32 if it does not).
  /// @param tensor  one of tensors().
  std::span<const uint8_t> data(const GgufTensor& tensor) const;

 private:
  const GgufEntry* find_entry(std::string_view key) const;
  void open_parts();

  std::vector<MappedFile> files_;
  uint32_t version_ = 0;
  std::vector<GgufEntry> entries_;
  std::vector<GgufTensor> tensors_;
  std::vector<size_t> entry_order_;   // indices, by key
  std::vector<size_t> tensor_order_;  // indices, by name
};

/// The value in a few words for people: "4", "\"llama\"", "[49152 strings]".
std::string describe(const GgufEntry& entry);

}  // namespace medusa
