#include "data/dataset/hdf5_structure.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "base/error.h"

namespace medusa {
namespace {

namespace message = hdf5_message;

// Far above what a shard has: 16 attributes and 7 names. They bound the work that a crafted file
// can ask for.
constexpr size_t kMostMessages = 1024;  // of one object header
constexpr size_t kMostNames = 64;       // of the root group
constexpr size_t kMostNameBytes = 255;

/// Names are found in a heap's data segment, where a zero byte ends them.
std::string heap_name(const Hdf5Bytes& file, std::span<const uint8_t> segment, uint64_t offset) {
  std::string name;
  for (; offset < segment.size() && name.size() <= kMostNameBytes; ++offset) {
    if (segment[offset] == 0) break;
    name += static_cast<char>(segment[offset]);
  }
  if (name.empty() || name.size() > kMostNameBytes || offset >= segment.size())
    file.fail(fmt::format("a name of the root group has no or more than {} bytes", kMostNameBytes));
  return name;
}

/// The data segment of a local heap.
std::span<const uint8_t> read_heap(const Hdf5Bytes& file, uint64_t address) {
  constexpr uint64_t kHeapBytes = 32;
  const std::string what = "the heap of the root group's names";
  Hdf5Fields fields(file, file.at(address, kHeapBytes, what), what);
  fields.expect(std::string_view("HEAP\0\0\0\0", 8));  // with version 0
  const auto size = fields.number<uint64_t>();
  fields.skip(sizeof(uint64_t));  // the first free piece
  return file.at(fields.number<uint64_t>(), size, what);
}

/// The addresses of the leaves of a B-tree that is one node high.
std::vector<uint64_t> read_tree(const Hdf5Bytes& file, uint64_t address) {
  constexpr uint64_t kNodeBytes = 24;   // before the keys
  constexpr uint64_t kEntryBytes = 16;  // a key and a child; one more key follows
  const std::string what = "the tree of the root group's names";
  Hdf5Fields head(file, file.at(address, kNodeBytes, what), what);
  head.expect(std::string_view("TREE\0", 5));  // a group's
  const auto level = head.number<uint8_t>();
  const auto used = head.number<uint16_t>();
  if (level != 0 || used > kMostNames)
    file.fail(fmt::format("the root group holds more than {} names", kMostNames));
  Hdf5Fields entries(file, file.at(address + kNodeBytes, used * kEntryBytes, what), what);
  std::vector<uint64_t> leaves;
  for (uint16_t i = 0; i < used; ++i) {
    entries.skip(sizeof(uint64_t));  // the key: leaves are read in their order, not searched
    leaves.push_back(entries.number<uint64_t>());
  }
  return leaves;
}

/// Appends the names of a leaf.
void read_leaf(const Hdf5Bytes& file, uint64_t address, std::span<const uint8_t> segment,
               std::vector<Hdf5Link>& links) {
  constexpr uint64_t kLeafBytes = 8;    // before the entries
  constexpr uint64_t kEntryBytes = 40;  // name, header, kind of cache, 20 bytes unused by us
  constexpr uint32_t kSoftLink = 2;
  const std::string what = "a leaf of the root group's names";
  Hdf5Fields head(file, file.at(address, kLeafBytes, what), what);
  head.expect(std::string_view("SNOD\1\0", 6));  // of version 1
  const auto count = head.number<uint16_t>();
  if (count > kMostNames - links.size())
    file.fail(fmt::format("the root group holds more than {} names", kMostNames));
  Hdf5Fields entries(file, file.at(address + kLeafBytes, count * kEntryBytes, what), what);
  for (uint16_t i = 0; i < count; ++i) {
    Hdf5Link link;
    link.name = heap_name(file, segment, entries.number<uint64_t>());
    link.header = entries.number<uint64_t>();
    if (entries.number<uint32_t>() == kSoftLink)
      file.fail(fmt::format("'/{}' is a soft link", link.name));
    entries.skip(20);
    if (!links.empty() && links.back().name >= link.name)
      file.fail(fmt::format("'/{}' stands behind '/{}'", link.name, links.back().name));
    links.push_back(std::move(link));
  }
}

/// Messages of one piece of a header, until its end.
/// @param pieces  continuation blocks are added to it.
/// @param count   messages so far, of at most `most`.
void read_messages(const Hdf5Bytes& file, std::span<const uint8_t> piece, const std::string& what,
                   uint16_t most, uint16_t& count, std::vector<std::span<const uint8_t>>& pieces,
                   std::vector<Hdf5Message>& messages) {
  constexpr uint8_t kSharedFlag = 2;
  Hdf5Fields fields(file, piece, what);
  while (fields.left() > 0) {
    if (count == most) file.fail(fmt::format("{} holds more than {} messages", what, most));
    ++count;
    Hdf5Message each;
    each.type = fields.number<uint16_t>();
    const auto size = fields.number<uint16_t>();
    each.shared = (fields.number<uint8_t>() & kSharedFlag) != 0;
    fields.skip(3);
    each.body = fields.take(size);
    if (each.type == message::kContinuation) {
      Hdf5Fields block(file, each.body, what);
      const auto address = block.number<uint64_t>();
      const auto bytes = block.number<uint64_t>();
      pieces.push_back(file.at(address, bytes, what));
    } else if (each.type != message::kNothing) {
      messages.push_back(each);
    }
  }
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "files and machine are little endian");

std::span<const uint8_t> Hdf5Bytes::at(uint64_t address, uint64_t size,
                                       const std::string& what) const {
  // The first comparison keeps the second from running below zero.
  if (address > bytes_.size() || size > bytes_.size() - address)
    fail(address == kNoHdf5Address
             ? fmt::format("{} is not there", what)
             : fmt::format("{} lies at {} and has {} bytes, the file ends at {}", what, address,
                           size, bytes_.size()));
  return bytes_.subspan(address, size);
}

void Hdf5Bytes::fail(const std::string& found) const {
  throw UserError(fmt::format(
      "{}: {}, expected an HDF5 file as data/dataset/FORMAT.md says; distill the dataset again, "
      "or have its maker write it so",
      file_, found));
}

uint64_t read_superblock(const Hdf5Bytes& file) {
  constexpr uint64_t kSuperblockBytes = 96;
  const std::string what = "its first block";
  Hdf5Fields fields(file, file.at(0, kSuperblockBytes, what), what);
  fields.expect("\x89HDF\r\n\x1a\n");
  if (const auto version = fields.number<uint8_t>(); version != 0)
    file.fail(fmt::format("it is written in a newer form of HDF5 (superblock version {}, not 0)",
                          version));
  const auto versions = fields.take(4);  // of free space, root group, (reserved), shared messages
  const auto address_bytes = fields.number<uint8_t>(), length_bytes = fields.number<uint8_t>();
  if (versions[0] != 0 || versions[1] != 0 || versions[3] != 0 || address_bytes != 8 ||
      length_bytes != 8)
    file.fail(
        fmt::format("its addresses have {} and its lengths {} bytes, or it is of an unknown "
                    "version",
                    address_bytes, length_bytes));
  fields.skip(9);  // reserved, the sizes of tree nodes, flags
  if (fields.number<uint64_t>() != 0) file.fail("it begins behind a block of another program");
  fields.skip(sizeof(uint64_t));  // where free space is listed
  if (const auto end = fields.number<uint64_t>(); end > file.size())
    file.fail(fmt::format("it is cut short, it has {} of {} bytes", file.size(), end));
  if (fields.number<uint64_t>() != kNoHdf5Address) file.fail("it is split over several files");
  fields.skip(sizeof(uint64_t));  // the root group's name
  return fields.number<uint64_t>();
}

std::vector<Hdf5Message> read_object_header(const Hdf5Bytes& file, uint64_t address,
                                            const std::string& owner) {
  constexpr uint64_t kPrefixBytes = 16;
  const std::string what = fmt::format("the object header of {}", owner);
  Hdf5Fields prefix(file, file.at(address, kPrefixBytes, what), what);
  const auto version = prefix.number<uint8_t>();
  if (version == 'O') file.fail(fmt::format("{} is written in a newer form of HDF5", owner));
  if (version != 1) file.fail(fmt::format("{} is of version {}, not 1", what, version));
  prefix.skip(1);
  const auto most = prefix.number<uint16_t>();
  if (most > kMostMessages)
    file.fail(fmt::format("{} holds {} messages, more than {}", what, most, kMostMessages));
  prefix.skip(sizeof(uint32_t));  // how many names it has
  const auto size = prefix.number<uint32_t>();
  std::vector<std::span<const uint8_t>> pieces{file.at(address + kPrefixBytes, size, what)};
  std::vector<Hdf5Message> messages;
  uint16_t count = 0;
  // A piece that leads back to an earlier one ends at the number of messages.
  for (size_t i = 0; i < pieces.size(); ++i)
    read_messages(file, pieces[i], what, most, count, pieces, messages);
  if (count != most) file.fail(fmt::format("{} holds {} messages and says {}", what, count, most));
  return messages;
}

std::vector<Hdf5Link> read_symbol_table(const Hdf5Bytes& file, std::span<const uint8_t> body) {
  const std::string what = "the root group's symbol table";
  Hdf5Fields fields(file, body, what);
  const auto tree = fields.number<uint64_t>();
  const auto segment = read_heap(file, fields.number<uint64_t>());
  std::vector<Hdf5Link> links;
  for (const uint64_t leaf : read_tree(file, tree)) read_leaf(file, leaf, segment, links);
  return links;
}

std::string describe_link_message(const Hdf5Bytes& file, const std::vector<Hdf5Message>& messages) {
  constexpr uint8_t kWithOrder = 4, kWithKind = 8, kWithCharacters = 16;
  constexpr uint8_t kHard = 0, kSoft = 1, kExternal = 64;
  const std::string what = "a link of the root group";
  for (const Hdf5Message& each : messages) {
    if (each.type != message::kLink || each.shared) continue;
    Hdf5Fields fields(file, each.body, what);
    fields.skip(1);  // version
    const auto flags = fields.number<uint8_t>();
    const uint8_t kind = (flags & kWithKind) != 0 ? fields.number<uint8_t>() : kHard;
    if ((flags & kWithOrder) != 0) fields.skip(sizeof(int64_t));
    if ((flags & kWithCharacters) != 0) fields.skip(1);
    uint64_t size = fields.number<uint8_t>();  // longer names have more bytes for it
    if ((flags & 3) != 0) size |= uint64_t{fields.number<uint8_t>()} << 8;
    if ((flags & 3) > 1) fields.skip((flags & 3) == 2 ? 2 : 6);
    const auto name = fields.take(size);
    if (kind == kHard || size > kMostNameBytes) continue;
    const char* words = kind == kSoft       ? "is a soft link"
                        : kind == kExternal ? "is an external link, so in another file"
                                            : "is a link of another program";
    return fmt::format("'/{}' {}", std::string(name.begin(), name.end()), words);
  }
  return {};
}

}  // namespace medusa
