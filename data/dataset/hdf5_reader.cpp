#include "data/dataset/hdf5_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace medusa {
namespace {

namespace message = hdf5_message;

/// Texts are padded with zero bytes.
std::string without_padding(std::span<const uint8_t> text) {
  return {text.begin(), std::ranges::find(text, uint8_t{0})};
}

template <typename T>
std::vector<T> copy_elements(const Hdf5Content& list) {
  std::vector<T> values(list.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), list.bytes.data(), list.bytes.size());
  return values;
}

template <typename T>
T copy_value(const Hdf5Content& value) {
  T copy;
  std::memcpy(&copy, value.bytes.data(), sizeof copy);
  return copy;
}

/// The symbol table of the root group; its header holds nothing else but attributes.
std::span<const uint8_t> symbol_table_of(const Hdf5Bytes& file,
                                         const std::vector<Hdf5Message>& messages) {
  const Hdf5Message* table = nullptr;
  if (const std::string link = describe_link_message(file, messages); !link.empty())
    file.fail(link);
  for (const Hdf5Message& each : messages) switch (each.type) {
      case message::kSymbolTable:
        if (table != nullptr || each.shared) file.fail("its root group has several symbol tables");
        table = &each;
        break;
      case message::kAttribute:
      case message::kComment:
      case message::kOldModificationTime:
      case message::kModificationTime:
        break;
      case message::kLinkInfo:
        file.fail("its root group is written in a newer form of HDF5");
      default:
        file.fail(fmt::format("its root group has a message of the unknown kind {}", each.type));
    }
  if (table == nullptr) file.fail("its root group has no symbol table");
  return table->body;
}

}  // namespace

Hdf5Reader::Hdf5Reader(std::span<const uint8_t> bytes, const std::filesystem::path& path)
    : bytes_(bytes), file_(bytes, path.string()) {
  const auto root = read_object_header(file_, read_superblock(file_), "the root group");
  const auto table = symbol_table_of(file_, root);
  for (const Hdf5Message& each : root) {
    if (each.type != message::kAttribute) continue;
    auto [name, content] = read_attribute(file_, each);
    if (!attributes_.emplace(name, std::move(content)).second)
      file_.fail(fmt::format("'{}' is there twice", name));
  }
  for (const Hdf5Link& link : read_symbol_table(file_, table)) {
    const std::string quoted = fmt::format("'/{}'", link.name);
    const auto header = read_object_header(file_, link.header, quoted);
    datasets_.emplace("/" + link.name, read_dataset(file_, header, quoted));
  }
  check_total();
}

/// Each content lies in the file; pieces that lie over one another are many times its size.
void Hdf5Reader::check_total() const {
  uint64_t total = 0;  // of at most 1024 attributes and 64 datasets: no overflow
  for (const Contents* contents : {&attributes_, &datasets_})
    for (const auto& [name, content] : *contents) total += content.bytes.size();
  if (total > file_.size())
    file_.fail(fmt::format("its contents have {} bytes and lie over one another in {}", total,
                           file_.size()));
}

const Hdf5Content& Hdf5Reader::find(const Contents& contents, const std::string& name,
                                    const char* expected) const {
  const auto found = contents.find(name);
  if (found == contents.end()) file_.fail(fmt::format("'{}', {}, is missing", name, expected));
  return found->second;
}

const Hdf5Content& Hdf5Reader::value(const std::string& name, Hdf5Type type,
                                     const char* expected) const {
  const Hdf5Content& found = find(attributes_, name, expected);
  if (found.type != type)
    file_.fail(fmt::format("'{}' is {}, not {}", name, describe(found), expected));
  return found;
}

const Hdf5Content& Hdf5Reader::list(const std::string& name, Hdf5Type type,
                                    const char* expected) const {
  const Hdf5Content& found = find(datasets_, name, expected);
  if (found.type != type || found.shape.size() != 1)
    file_.fail(fmt::format("'{}' is {}, not {}", name, describe(found), expected));
  return found;
}

std::string Hdf5Reader::text(const std::string& name) const {
  return without_padding(value(name, Hdf5Type::Text, "a fixed-length text").bytes);
}

int64_t Hdf5Reader::number(const std::string& name) const {
  return copy_value<int64_t>(value(name, Hdf5Type::Int64, "an int64"));
}

uint64_t Hdf5Reader::unsigned_number(const std::string& name) const {
  return copy_value<uint64_t>(value(name, Hdf5Type::UInt64, "a uint64"));
}

std::vector<int32_t> Hdf5Reader::int32_list(const std::string& name) const {
  return copy_elements<int32_t>(list(name, Hdf5Type::Int32, "a list of int32"));
}

std::vector<int64_t> Hdf5Reader::int64_list(const std::string& name) const {
  return copy_elements<int64_t>(list(name, Hdf5Type::Int64, "a list of int64"));
}

std::vector<float> Hdf5Reader::float_list(const std::string& name) const {
  return copy_elements<float>(list(name, Hdf5Type::Float32, "a list of float32"));
}

std::vector<std::string> Hdf5Reader::text_list(const std::string& name) const {
  const Hdf5Content& texts = list(name, Hdf5Type::Text, "a list of fixed-length texts");
  std::vector<std::string> values;
  values.reserve(static_cast<size_t>(texts.shape[0]));
  for (auto rest = texts.bytes; !rest.empty(); rest = rest.subspan(texts.element_bytes))
    values.push_back(without_padding(rest.first(texts.element_bytes)));
  return values;
}

int64_t Hdf5Reader::length(const std::string& name) const {
  const Hdf5Content& found = find(datasets_, name, "a list");
  if (found.shape.size() != 1)
    file_.fail(fmt::format("'{}' is {}, not a list", name, describe(found)));
  return found.shape[0];
}

Hdf5Reader::Block Hdf5Reader::matrix(const std::string& name, Hdf5Type type,
                                     const char* expected) const {
  const Hdf5Content& found = find(datasets_, name, expected);
  if (found.type != type || found.shape.size() != 2)
    file_.fail(fmt::format("'{}' is {}, not {}", name, describe(found), expected));
  Block block{0, found.shape[0], found.shape[1]};
  if (!found.bytes.empty()) block.offset = found.bytes.data() - bytes_.data();
  return block;
}

Hdf5Reader::Block Hdf5Reader::uint16_matrix(const std::string& name) const {
  return matrix(name, Hdf5Type::UInt16, "a matrix of uint16");
}

Hdf5Reader::Block Hdf5Reader::int8_matrix(const std::string& name) const {
  return matrix(name, Hdf5Type::Int8, "a matrix of int8");
}

bool is_hdf5(std::span<const uint8_t> bytes) {
  constexpr uint8_t kSignature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  return bytes.size() >= sizeof kSignature &&
         std::equal(std::begin(kSignature), std::end(kSignature), bytes.begin());
}

uint64_t hdf5_expected_size(std::span<const uint8_t> bytes) {
  // Superblock of version 0 with 8-byte addresses (HDF5 file format specification, II.A.1).
  constexpr size_t kVersionAt = 8, kAddressBytesAt = 13, kEndOfFileAt = 40;
  if (!is_hdf5(bytes) || bytes.size() < kEndOfFileAt + 8) return 0;
  if (bytes[kVersionAt] != 0 || bytes[kAddressBytesAt] != 8) return 0;
  uint64_t size = 0;
  std::memcpy(&size, &bytes[kEndOfFileAt], sizeof size);
  return size;
}

}  // namespace medusa
