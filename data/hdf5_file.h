// A thin layer over HDF5: just the attributes and arrays that our files hold. The .cpp is the only
// file that includes hdf5.h.
//
// Thread safety: none, not even for different objects (Debian's HDF5 is built without locks).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace medusa {

/// Builds an HDF5 file in memory. It is written to the disk as plain bytes afterwards: a full disk
/// is then an ordinary write error instead of a half-closed HDF5 file. No time stamps are recorded:
/// the same calls give the same bytes.
class Hdf5Builder {
 public:
  Hdf5Builder();
  ~Hdf5Builder();
  Hdf5Builder(const Hdf5Builder&) = delete;
  Hdf5Builder& operator=(const Hdf5Builder&) = delete;

  /// Attributes of the root group.
  void text(const char* name, std::string_view value);  // fixed-length UTF-8, zero padded
  void number(const char* name, int64_t value);
  void number(const char* name, uint64_t value);

  /// Datasets, little-endian and contiguous, never chunked or compressed.
  void array(const char* name, std::span<const int32_t> values);
  void array(const char* name, std::span<const int64_t> values);
  void array(const char* name, std::span<const std::string> values);  // as text(), equally long
  void array(const char* name, std::span<const float> values);
  void matrix(const char* name, std::span<const uint16_t> values, int64_t columns);
  void matrix(const char* name, std::span<const int8_t> values, int64_t columns);

  /// The file. Nothing may be added afterwards.
  std::string bytes();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads such a file. Whatever is missing or has another type is a UserError.
class Hdf5Reader {
 public:
  /// @throws UserError  the file is missing or not HDF5.
  explicit Hdf5Reader(const std::filesystem::path& path);
  ~Hdf5Reader();
  Hdf5Reader(const Hdf5Reader&) = delete;
  Hdf5Reader& operator=(const Hdf5Reader&) = delete;

  std::string text(const char* name) const;
  int64_t number(const char* name) const;
  uint64_t unsigned_number(const char* name) const;

  std::vector<int32_t> int32_array(const char* name) const;
  std::vector<int64_t> int64_array(const char* name) const;
  std::vector<float> float_array(const char* name) const;
  std::vector<std::string> text_array(const char* name) const;

  /// Where the elements of a matrix lie in the file, row after row, so that they can be read
  /// without HDF5.
  struct Block {
    int64_t offset = 0;  // bytes from the start of the file; 0 if there are no rows
    int64_t rows = 0;
    int64_t columns = 0;
  };
  Block uint16_matrix(const char* name) const;
  Block int8_matrix(const char* name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// True when the bytes begin as an HDF5 file does.
bool is_hdf5(std::span<const uint8_t> bytes);

/// The size in bytes that a file begun with these bytes should have, as its first block says; 0 if
/// it does not say (not HDF5, or not of the version that Hdf5Builder writes).
int64_t hdf5_expected_size(std::span<const uint8_t> bytes);

}  // namespace medusa
