// A thin layer over libhdf5: just the attributes and arrays that our files hold. The .cpp is the
// only file that includes hdf5.h. What it writes is read back by hdf5_reader.h, which needs no
// libhdf5.
//
// Thread safety: none, not even for different objects (Debian's HDF5 is built without locks).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

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

}  // namespace medusa
