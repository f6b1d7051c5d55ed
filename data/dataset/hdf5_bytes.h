// The bytes of an HDF5 file of unknown origin: what lies outside of them cannot be asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace medusa {

/// The address that HDF5 writes where there is none.
inline constexpr uint64_t kNoHdf5Address = UINT64_MAX;

class Hdf5Bytes {
 public:
  /// @param bytes  live as long as the object.
  /// @param file   its path, for messages.
  Hdf5Bytes(std::span<const uint8_t> bytes, std::string file)
      : bytes_(bytes), file_(std::move(file)) {}

  uint64_t size() const { return bytes_.size(); }

  /// The bytes [address, address + size).
  /// @param what  "the object header of '/tokens'".
  /// @throws UserError  they do not all lie in the file.
  std::span<const uint8_t> at(uint64_t address, uint64_t size, const std::string& what) const;

  /// @param found  "'/tokens' is a soft link".
  [[noreturn]] void fail(const std::string& found) const;

 private:
  std::span<const uint8_t> bytes_;
  std::string file_;
};

/// Takes the fields of one structure, one after the other.
class Hdf5Fields {
 public:
  /// @param what  "the object header of '/tokens'". File and text live as long as the object.
  Hdf5Fields(const Hdf5Bytes& file, std::span<const uint8_t> bytes, const std::string& what)
      : file_(file), rest_(bytes), what_(what) {}

  size_t left() const { return rest_.size(); }

  /// @throws UserError  fewer are left.
  std::span<const uint8_t> take(uint64_t size) {
    if (size > rest_.size()) file_.fail(what_ + " ends too early");
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  void skip(uint64_t size) { (void)take(size); }

  /// A little-endian number.
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  /// @param expected  "SNOD", or what else must stand here.
  void expect(std::string_view expected) {
    const auto found = take(expected.size());
    if (std::memcmp(found.data(), expected.data(), expected.size()) != 0)
      file_.fail(what_ + " does not begin as one");
  }

 private:
  const Hdf5Bytes& file_;
  std::span<const uint8_t> rest_;
  const std::string& what_;
};

}  // namespace medusa
