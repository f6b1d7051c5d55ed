// The skeleton of an HDF5 file of unknown origin: from the first byte to the names of the root
// group and the messages of an object header. It knows the forms that Hdf5Builder writes (and h5py
// unless told otherwise) and refuses every other by its name; docs/design-notes/hdf5-reading.md
// lists them.
//
// Format: "HDF5 File Format Specification", version 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// The kinds of messages that we know.
namespace hdf5_message {
inline constexpr uint16_t kNothing = 0x00;
inline constexpr uint16_t kDataspace = 0x01;
inline constexpr uint16_t kLinkInfo = 0x02;
inline constexpr uint16_t kDatatype = 0x03;
inline constexpr uint16_t kOldFillValue = 0x04;
inline constexpr uint16_t kFillValue = 0x05;
inline constexpr uint16_t kLink = 0x06;
inline constexpr uint16_t kExternalFiles = 0x07;
inline constexpr uint16_t kLayout = 0x08;
inline constexpr uint16_t kFilters = 0x0B;
inline constexpr uint16_t kAttribute = 0x0C;
inline constexpr uint16_t kComment = 0x0D;
inline constexpr uint16_t kOldModificationTime = 0x0E;
inline constexpr uint16_t kContinuation = 0x10;
inline constexpr uint16_t kSymbolTable = 0x11;
inline constexpr uint16_t kModificationTime = 0x12;
}  // namespace hdf5_message

struct Hdf5Message {
  uint16_t type = 0;
  bool shared = false;  // the body only says where the message is
  std::span<const uint8_t> body;
};

/// A name of the root group.
struct Hdf5Link {
  std::string name;     // "tokens"
  uint64_t header = 0;  // address of the object header; not yet looked at
};

/// Reads the superblock.
/// @returns  the address of the root group's object header.
uint64_t read_superblock(const Hdf5Bytes& file);

/// The messages of an object header, those of its continuation blocks included, without the blocks
/// themselves and without empty ones.
/// @param owner  "'/tokens'", for messages.
std::vector<Hdf5Message> read_object_header(const Hdf5Bytes& file, uint64_t address,
                                            const std::string& owner);

/// The names that a symbol table message leads to, in ascending order. All are hard links.
std::vector<Hdf5Link> read_symbol_table(const Hdf5Bytes& file, std::span<const uint8_t> message);

/// "'/tokens' is an external link": the first of the link messages, by which files of the newer
/// form hold their names. Empty if it is a hard link, or none is there.
std::string describe_link_message(const Hdf5Bytes& file, const std::vector<Hdf5Message>& messages);

}  // namespace medusa
