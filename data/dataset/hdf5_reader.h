// Reads what Hdf5Builder writes, out of bytes of unknown origin. It is ours and not libhdf5's
// because datasets are handed from person to person: nothing but this one file is opened, no name
// leads out of it, and what is not known here is refused. docs/design-notes/hdf5-reading.md has the
// reasons and the list of what is accepted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/dataset/hdf5_content.h"

namespace medusa {

/// The attributes and datasets of the root group. All of them are looked at when it is opened: what
/// they say of their size is true and, all together, not more than the file. Contents are copied
/// when they are asked for; whatever is missing or has another type or shape is a UserError.
///
/// Thread safety: const calls may run at the same time.
class Hdf5Reader {
 public:
  /// @param bytes  of the whole file; they live as long as the reader.
  /// @param path   for messages; it is not opened.
  /// @throws UserError  not HDF5, damaged, or of another form than Hdf5Builder's.
  Hdf5Reader(std::span<const uint8_t> bytes, const std::filesystem::path& path);

  // Attributes.
  std::string text(const std::string& name) const;
  int64_t number(const std::string& name) const;
  uint64_t unsigned_number(const std::string& name) const;

  // Datasets, named "/tokens".
  std::vector<int32_t> int32_list(const std::string& name) const;
  std::vector<int64_t> int64_list(const std::string& name) const;
  std::vector<float> float_list(const std::string& name) const;
  std::vector<std::string> text_list(const std::string& name) const;

  /// How many elements a list has, to be compared before any is copied.
  int64_t length(const std::string& name) const;

  /// Where the elements of a matrix lie in the file, row after row.
  struct Block {
    int64_t offset = 0;  // bytes from the start of the file; 0 if there are no rows
    int64_t rows = 0;
    int64_t columns = 0;
  };
  Block uint16_matrix(const std::string& name) const;
  Block int8_matrix(const std::string& name) const;

 private:
  using Contents = std::map<std::string, Hdf5Content>;

  void check_total() const;
  const Hdf5Content& find(const Contents& contents, const std::string& name,
                          const char* expected) const;
  const Hdf5Content& value(const std::string& name, Hdf5Type type, const char* expected) const;
  const Hdf5Content& list(const std::string& name, Hdf5Type type, const char* expected) const;
  Block matrix(const std::string& name, Hdf5Type type, const char* expected) const;

  std::span<const uint8_t> bytes_;
  Hdf5Bytes file_;
  Contents attributes_;
  Contents datasets_;
};

/// True when the bytes begin as an HDF5 file does.
bool is_hdf5(std::span<const uint8_t> bytes);

/// The size in bytes that a file begun with these bytes should have, as its first block says; 0 if
/// it does not say (not HDF5, or not of the version that Hdf5Builder writes).
uint64_t hdf5_expected_size(std::span<const uint8_t> bytes);

}  // namespace medusa
