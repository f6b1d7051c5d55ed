#include "data/dataset/hdf5_content.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

namespace medusa {
namespace {

namespace message = hdf5_message;

constexpr uint8_t kIntegers = 0, kFloats = 1, kTexts = 3;

struct ElementType {
  Hdf5Type type = Hdf5Type::Int64;
  uint32_t bytes = 0;
};

const char* type_name(Hdf5Type type) {
  switch (type) {
    case Hdf5Type::Int8:
      return "int8";
    case Hdf5Type::UInt16:
      return "uint16";
    case Hdf5Type::Int32:
      return "int32";
    case Hdf5Type::Int64:
      return "int64";
    case Hdf5Type::UInt64:
      return "uint64";
    case Hdf5Type::Float32:
      return "float32";
    case Hdf5Type::Text:
      return "fixed-length text";
  }
  return "?";
}

/// @param flags  of the type's class, 24 bits.
/// @param rest   the properties of the class.
std::optional<Hdf5Type> integer_type(uint32_t flags, uint32_t bytes, Hdf5Fields rest) {
  constexpr uint32_t kSigned = 8;  // the other bits: byte order and padding
  const auto first_bit = rest.number<uint16_t>(), bits = rest.number<uint16_t>();
  if ((flags & ~kSigned) != 0 || first_bit != 0 || bits != 8 * uint64_t{bytes}) return std::nullopt;
  const bool is_signed = (flags & kSigned) != 0;
  if (is_signed && bytes == 1) return Hdf5Type::Int8;
  if (is_signed && bytes == 4) return Hdf5Type::Int32;
  if (is_signed && bytes == 8) return Hdf5Type::Int64;
  if (!is_signed && bytes == 2) return Hdf5Type::UInt16;
  if (!is_signed && bytes == 8) return Hdf5Type::UInt64;
  return std::nullopt;
}

/// The one floating-point type: IEEE 754 of 32 bits.
bool is_float32(uint32_t flags, uint32_t bytes, Hdf5Fields rest) {
  constexpr uint32_t kFlags = 0x1F20;  // sign in bit 31, a leading 1 that is not stored
  constexpr uint8_t kProperties[] = {0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0};
  const auto properties = rest.take(sizeof kProperties);
  return flags == kFlags && bytes == 4 && std::ranges::equal(properties, kProperties);
}

/// A type that is not ours, in a word or two.
std::string foreign_type(uint8_t kind, uint32_t flags, uint32_t bytes) {
  constexpr const char* kClasses[] = {"",        "",
                                      "times",   "another kind of texts",
                                      "bits",    "opaque bytes",
                                      "records", "references to other objects",
                                      "an enum", "texts or lists of variable length",
                                      "arrays"};
  constexpr uint32_t kBigEndian = 1, kSigned = 8;
  const char* order = (flags & kBigEndian) != 0 ? "big-endian " : "";
  if (kind == kFloats) return fmt::format("{}float{}", order, 8 * uint64_t{bytes});
  if (kind == kIntegers)
    return fmt::format("{}{}int{}", order, (flags & kSigned) != 0 ? "" : "u", 8 * uint64_t{bytes});
  return kind < std::size(kClasses) ? kClasses[kind] : "values of an unknown type";
}

/// @param name  "'/tokens'".
ElementType read_type(const Hdf5Bytes& file, std::span<const uint8_t> bytes,
                      const std::string& name) {
  constexpr uint32_t kPadding = 0x0F, kZeroPadded = 1;  // 0: ended by a zero byte
  constexpr uint32_t kUtf8 = 0x10;                      // 0: ASCII
  const std::string what = fmt::format("the type of {}", name);
  Hdf5Fields fields(file, bytes, what);
  const auto head = fields.number<uint32_t>();
  const uint8_t kind = head & 0x0F, version = head >> 4 & 0x0F;
  const uint32_t flags = head >> 8;
  const auto size = fields.number<uint32_t>();
  std::optional<Hdf5Type> type;
  if (version == 1 && size > 0) {
    if (kind == kIntegers) type = integer_type(flags, size, fields);
    if (kind == kFloats && is_float32(flags, size, fields)) type = Hdf5Type::Float32;
    if (kind == kTexts && (flags & kPadding) <= kZeroPadded && (flags & ~kPadding & ~kUtf8) == 0)
      type = Hdf5Type::Text;
  }
  if (!type)
    file.fail(fmt::format("{} holds {} (type version {})", name, foreign_type(kind, flags, size),
                          version));
  return {*type, size};
}

/// No dimensions: one value.
std::vector<int64_t> read_shape(const Hdf5Bytes& file, std::span<const uint8_t> bytes,
                                const std::string& name) {
  constexpr uint8_t kWithLargest = 1;
  constexpr size_t kMostDimensions = 2;
  const std::string what = fmt::format("the shape of {}", name);
  Hdf5Fields fields(file, bytes, what);
  const auto version = fields.number<uint8_t>(), dimensions = fields.number<uint8_t>(),
             flags = fields.number<uint8_t>();
  if (version != 1 || (flags & ~kWithLargest) != 0)
    file.fail(
        fmt::format("{} is of version {} with flags {}, not of version 1", what, version, flags));
  if (dimensions > kMostDimensions)
    file.fail(fmt::format("{} has {} dimensions", name, dimensions));
  fields.skip(5);
  std::vector<int64_t> shape;
  for (uint8_t i = 0; i < dimensions; ++i) {
    const auto size = fields.number<uint64_t>();
    if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      file.fail(fmt::format("{} has a dimension of {}", name, size));
    shape.push_back(static_cast<int64_t>(size));
  }
  if (flags != 0)
    for (const int64_t size : shape)
      if (fields.number<uint64_t>() != static_cast<uint64_t>(size))
        file.fail(fmt::format("{} may grow", name));
  return shape;
}

/// The bytes of all elements: a product that must not wrap around, of things that a file of this
/// size can hold.
uint64_t bytes_of_all(const Hdf5Bytes& file, const Hdf5Content& content, const std::string& name) {
  uint64_t bytes = content.element_bytes;
  bool overflows = false;
  for (const int64_t size : content.shape)
    overflows |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes);
  if (overflows || bytes > file.size())
    file.fail(fmt::format("{} is {}, more than the file's {} bytes hold", name, describe(content),
                          file.size()));
  return bytes;
}

/// The one message of a kind.
/// @param kind  "a shape".
std::span<const uint8_t> only_message(const Hdf5Bytes& file,
                                      const std::vector<Hdf5Message>& messages, uint16_t type,
                                      const std::string& name, const char* kind) {
  const Hdf5Message* found = nullptr;
  for (const Hdf5Message& each : messages) {
    if (each.type != type) continue;
    if (found != nullptr) file.fail(fmt::format("{} has {} twice", name, kind));
    found = &each;
  }
  if (found == nullptr) file.fail(fmt::format("{} has no {}, so it is no list", name, kind + 2));
  if (found->shared) file.fail(fmt::format("{} has {} that is kept elsewhere", name, kind));
  return found->body;
}

bool has_message(const std::vector<Hdf5Message>& messages, uint16_t type) {
  return std::ranges::any_of(messages, [&](const Hdf5Message& each) { return each.type == type; });
}

/// Messages beside the three that are read: skipped where they say nothing about how the values are
/// stored, else refused.
void check_dataset_messages(const Hdf5Bytes& file, const std::vector<Hdf5Message>& messages,
                            const std::string& name) {
  if (has_message(messages, message::kSymbolTable) || has_message(messages, message::kLinkInfo))
    file.fail(fmt::format("{} is a group", name));
  if (has_message(messages, message::kExternalFiles))
    file.fail(fmt::format("{} is stored in another file", name));
  if (has_message(messages, message::kDatatype) && !has_message(messages, message::kLayout))
    file.fail(fmt::format("{} is a named type", name));
  for (const Hdf5Message& each : messages) switch (each.type) {
      case message::kDataspace:
      case message::kDatatype:
      case message::kLayout:
      case message::kFilters:  // only with chunks, which are refused
      case message::kOldFillValue:
      case message::kFillValue:  // stands for values that were never written; all must be there
      case message::kAttribute:  // of a dataset: nobody asks for them
      case message::kComment:
      case message::kOldModificationTime:
      case message::kModificationTime:
        break;
      default:
        file.fail(fmt::format("{} has a message of the unknown kind {}", name, each.type));
    }
}

/// Where the values lie.
std::span<const uint8_t> read_layout(const Hdf5Bytes& file,
                                     const std::vector<Hdf5Message>& messages, uint64_t bytes,
                                     const std::string& name) {
  constexpr uint8_t kCompact = 0, kContiguous = 1, kChunked = 2, kVirtual = 3;
  const std::string what = fmt::format("the layout of {}", name);
  Hdf5Fields fields(file, only_message(file, messages, message::kLayout, name, "a layout"), what);
  const auto version = fields.number<uint8_t>(), kind = fields.number<uint8_t>();
  const bool known = version == 3 || version == 4;  // these two have the kind in this place
  const bool filtered = has_message(messages, message::kFilters);
  if (known && kind == kVirtual)
    file.fail(fmt::format("{} is a virtual dataset, so stored in other files", name));
  if (known && (kind == kChunked || filtered))
    file.fail(fmt::format("{} is chunked{}", name, filtered ? " and compressed" : ""));
  if (known && kind == kCompact) file.fail(fmt::format("{} is stored in its header", name));
  if (version != 3 || kind != kContiguous)
    file.fail(fmt::format("{} is of version {} and class {}, not 3 and 1", what, version, kind));
  const auto address = fields.number<uint64_t>(), size = fields.number<uint64_t>();
  if (size != bytes)
    file.fail(fmt::format("{} has room for {} bytes, its shape says {}", name, size, bytes));
  if (bytes == 0) return {};
  if (address == kNoHdf5Address) file.fail(fmt::format("the values of {} were not written", name));
  return file.at(address, bytes, name);
}

}  // namespace

std::string describe(const Hdf5Content& content) {
  const char* type = type_name(content.type);
  if (content.shape.empty())
    return fmt::format("{} {}",
                       content.type == Hdf5Type::Int8 || content.type == Hdf5Type::Int32 ||
                               content.type == Hdf5Type::Int64
                           ? "an"
                           : "a",
                       type);
  const std::string elements = content.type == Hdf5Type::Text
                                   ? fmt::format("texts of {} bytes", content.element_bytes)
                                   : type;
  if (content.shape.size() == 1) return fmt::format("a list of {} {}", content.shape[0], elements);
  return fmt::format("a matrix [{}, {}] of {}", content.shape[0], content.shape[1], elements);
}

std::pair<std::string, Hdf5Content> read_attribute(const Hdf5Bytes& file,
                                                   const Hdf5Message& attribute) {
  // Name, type and shape are each padded to a multiple of 8 bytes.
  constexpr auto kPadded = [](uint16_t size) { return (uint64_t{size} + 7) / 8 * 8; };
  std::string what = "an attribute";
  if (attribute.shared) file.fail(fmt::format("{} is kept elsewhere", what));
  Hdf5Fields fields(file, attribute.body, what);
  if (const auto version = fields.number<uint8_t>(); version != 1)
    file.fail(fmt::format("{} is of version {}, not 1", what, version));
  fields.skip(1);
  const auto name_bytes = fields.number<uint16_t>(), type_bytes = fields.number<uint16_t>(),
             shape_bytes = fields.number<uint16_t>();
  const auto field = fields.take(kPadded(name_bytes));
  const std::string name(field.begin(), std::ranges::find(field, uint8_t{0}));
  if (name.size() + 1 != name_bytes) file.fail(fmt::format("{} has no name", what));
  what = fmt::format("'{}'", name);
  const auto type = read_type(file, fields.take(kPadded(type_bytes)), what);
  Hdf5Content content{type.type, type.bytes,
                      read_shape(file, fields.take(kPadded(shape_bytes)), what)};
  if (!content.shape.empty())
    file.fail(fmt::format("the attribute '{}' is {}, not one value", name, describe(content)));
  content.bytes = fields.take(bytes_of_all(file, content, what));
  return {name, content};
}

Hdf5Content read_dataset(const Hdf5Bytes& file, const std::vector<Hdf5Message>& messages,
                         const std::string& name) {
  check_dataset_messages(file, messages, name);
  const auto type =
      read_type(file, only_message(file, messages, message::kDatatype, name, "a type"), name);
  Hdf5Content content{
      type.type, type.bytes,
      read_shape(file, only_message(file, messages, message::kDataspace, name, "a shape"), name)};
  if (content.shape.empty())
    file.fail(fmt::format("{} is {}, not a list", name, describe(content)));
  const uint64_t bytes = bytes_of_all(file, content, name);
  content.bytes = read_layout(file, messages, bytes, name);
  return content;
}

}  // namespace medusa
