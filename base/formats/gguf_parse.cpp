#include "base/formats/gguf_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "base/error.h"

namespace medusa {
namespace {

static_assert(std::endian::native == std::endian::little, "files and machine are little endian");

constexpr int64_t kMinEntryBytes = 8 + 4 + 1;           // empty key, type, one byte
constexpr int64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;  // empty name, one dimension
constexpr int64_t kMaxAlignment = 1 << 16;
constexpr size_t kMaxNameBytes = 65535;  // of a key or a tensor's name; the format's limit for keys

/// Bytes of one value; 0 for String and Array, nullopt for an id we do not know.
std::optional<int64_t> fixed_size(uint32_t type) {
  static constexpr int64_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  if (type >= std::size(kSizes)) return std::nullopt;
  return kSizes[type];
}

/// What a file that is not a GGUF file seems to be.
std::string likely_kind(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("FUGG")) return "is a big-endian GGUF file";
  if (text.starts_with("PK\x03\x04")) return "is a zip archive or a PyTorch checkpoint";
  if (text.starts_with("\x89HDF")) return "is an HDF5 file";
  if (text.starts_with("version https://git-lfs")) return "is a Git LFS pointer to the real file";
  uint64_t header = 0;
  if (text.size() > 9) std::memcpy(&header, text.data(), sizeof header);
  if (header > 0 && header <= text.size() - 8 && text[8] == '{') return "is a safetensors file";
  const auto start = text.substr(0, 64);
  if (std::all_of(start.begin(), start.end(), [](char c) {
        return static_cast<unsigned char>(c) >= 32 || (c >= '\t' && c <= '\r');
      }))
    return "is a text file";
  return "does not start with the letters GGUF";
}

/// Walks through the file; every step is checked against its end.
class Cursor {
 public:
  Cursor(std::span<const uint8_t> bytes, const std::filesystem::path& path)
      : bytes_(bytes), path_(path) {}

  int64_t position() const { return static_cast<int64_t>(at_); }
  int64_t left() const { return static_cast<int64_t>(bytes_.size() - at_); }

  std::span<const uint8_t> take(uint64_t size, const std::string& what) {
    if (size > static_cast<uint64_t>(left())) fail_short(what);
    const auto taken = bytes_.subspan(at_, size);
    at_ += size;
    return taken;
  }

  template <typename T>
  T number(const std::string& what) {
    T value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }

  std::string_view string(const std::string& what) {
    const auto text = take(number<uint64_t>(what), what);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  /// A key or a tensor's name.
  std::string_view name(const std::string& what) {
    const auto text = string(what);
    if (text.size() > kMaxNameBytes) fail(fmt::format("has {} of {} bytes", what, text.size()));
    return text;
  }

  /// A count of things that take at least min_bytes each: refused before anything is stored.
  int64_t count(int64_t min_bytes, const std::string& what) {
    const auto value = number<uint64_t>(what);
    if (value > static_cast<uint64_t>(left() / min_bytes))
      fail(fmt::format("says that it has {} {}, but only {} bytes follow", value, what, left()));
    return static_cast<int64_t>(value);
  }

  [[noreturn]] void fail(const std::string& found) const {
    throw UserError(
        fmt::format("{}: {}; expected a whole, consistent GGUF file: copy, convert or download it "
                    "again",
                    path_.string(), found));
  }

  [[noreturn]] void fail_short(const std::string& what) const {
    fail(fmt::format("ends inside {} (the file has {} bytes)", what, bytes_.size()));
  }

 private:
  std::span<const uint8_t> bytes_;
  const std::filesystem::path& path_;
  size_t at_ = 0;
};

GgufEntry parse_entry(Cursor& cursor) {
  GgufEntry entry{};
  entry.key = cursor.name("a metadata key");
  const std::string what = fmt::format("the value of the metadata key '{}'", entry.key);
  auto type = cursor.number<uint32_t>(what);
  entry.is_array = type == static_cast<uint32_t>(GgufValueType::Array);
  if (entry.is_array) type = cursor.number<uint32_t>(what);
  const auto size = fixed_size(type);
  if (!size || type == static_cast<uint32_t>(GgufValueType::Array))
    cursor.fail(fmt::format("{} is of type {}{}, which GGUF files do not hold", what,
                            entry.is_array ? "array of " : "",
                            size ? "array" : fmt::format("{}", type)));
  entry.type = static_cast<GgufValueType>(type);
  const int64_t least = *size > 0 ? *size : 8;  // a string has at least its length
  entry.count = entry.is_array ? cursor.count(least, "elements in " + what) : 1;
  Cursor start = cursor;
  if (*size > 0) {
    entry.raw = cursor.take(static_cast<uint64_t>(entry.count * *size), what);
  } else {
    for (int64_t i = 0; i < entry.count; ++i) cursor.string(what);
    entry.raw = start.take(static_cast<uint64_t>(cursor.position() - start.position()), what);
  }
  return entry;
}

/// The bytes a tensor takes; what is wrong with it goes to cursor.fail().
int64_t tensor_bytes(const GgufTensor& tensor, const Cursor& cursor) {
  const auto& info = ggml_type_info(tensor.type);
  int64_t elements = 1;
  for (const int64_t size : tensor.dims) {
    if (size < 1 || elements > std::numeric_limits<int64_t>::max() / 8 / size)
      cursor.fail(fmt::format("the tensor '{}' has the dimension {}", tensor.name,
                              static_cast<uint64_t>(size)));
    elements *= size;
  }
  if (tensor.dims[0] % info.block_size != 0)
    cursor.fail(fmt::format("the tensor '{}' has {} columns, {} needs a multiple of {}",
                            tensor.name, tensor.dims[0], info.name, info.block_size));
  return elements / info.block_size * info.block_bytes;
}

GgufTensor parse_tensor(Cursor& cursor, int64_t alignment) {
  GgufTensor tensor{};
  tensor.name = cursor.name("a tensor's name");
  const std::string what = fmt::format("the directory entry of the tensor '{}'", tensor.name);
  const auto num_dims = cursor.number<uint32_t>(what);
  if (num_dims < 1 || num_dims > 4)
    cursor.fail(fmt::format("the tensor '{}' has {} dimensions", tensor.name, num_dims));
  for (uint32_t i = 0; i < num_dims; ++i)
    tensor.dims.push_back(static_cast<int64_t>(cursor.number<uint64_t>(what)));
  const auto type = cursor.number<uint32_t>(what);
  if (find_ggml_type(type) == nullptr)
    cursor.fail(fmt::format("the tensor '{}' is of type {}, which this program does not know",
                            tensor.name, type));
  tensor.type = static_cast<GgmlType>(type);
  tensor.bytes = tensor_bytes(tensor, cursor);
  const auto offset = cursor.number<uint64_t>(what);
  if (offset > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / 2)
    cursor.fail_short(fmt::format("the tensor '{}'", tensor.name));
  tensor.offset = static_cast<int64_t>(offset);
  if (tensor.offset % alignment != 0)
    cursor.fail(fmt::format("the tensor '{}' is at offset {}, not a multiple of {}", tensor.name,
                            offset, alignment));
  return tensor;
}

int64_t read_alignment(const std::vector<GgufEntry>& entries, const Cursor& cursor) {
  for (const auto& entry : entries) {
    if (entry.key != "general.alignment") continue;
    int64_t alignment = 0;
    const char* wrong = read_gguf_value(entry, alignment);
    if (wrong != nullptr || alignment < 8 || alignment > kMaxAlignment ||
        !std::has_single_bit(static_cast<uint64_t>(alignment)))
      cursor.fail(fmt::format("general.alignment is {}, not a power of two from 8 to {}",
                              describe(entry), kMaxAlignment));
    return alignment;
  }
  return 32;
}

/// Turns offsets into positions in the file; tensors must lie inside it and apart.
void place_tensors(std::vector<GgufTensor>& tensors, int64_t alignment, int64_t file_size,
                   const Cursor& cursor) {
  const int64_t start = (cursor.position() + alignment - 1) / alignment * alignment;
  std::vector<const GgufTensor*> by_offset;
  for (auto& tensor : tensors) {
    tensor.offset += start;
    if (tensor.offset > file_size || tensor.bytes > file_size - tensor.offset)
      cursor.fail_short(fmt::format("the tensor '{}'", tensor.name));
    by_offset.push_back(&tensor);
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const auto& before = *by_offset[i - 1];
    if (before.offset + before.bytes > by_offset[i]->offset)
      cursor.fail(
          fmt::format("the tensors '{}' and '{}' overlap", before.name, by_offset[i]->name));
  }
}

}  // namespace

GgufDirectory parse_gguf(std::span<const uint8_t> bytes, const std::filesystem::path& path) {
  Cursor cursor(bytes, path);
  if (bytes.size() < 4 || std::memcmp(bytes.data(), "GGUF", 4) != 0)
    throw UserError(fmt::format("{}: {}, expected a GGUF file; give the model's .gguf file",
                                path.string(), likely_kind(bytes)));
  cursor.take(4, "the header");
  GgufDirectory directory;
  directory.version = cursor.number<uint32_t>("the header");
  if (directory.version < 2 || directory.version > 3)
    throw UserError(fmt::format(
        "{}: is a GGUF file of version {}, expected 2 or 3 (little endian); convert it again",
        path.string(), directory.version));
  const auto num_tensors = cursor.count(kMinTensorBytes, "tensors");
  const auto num_entries = cursor.count(kMinEntryBytes, "metadata keys");
  for (int64_t i = 0; i < num_entries; ++i) directory.entries.push_back(parse_entry(cursor));
  const auto alignment = read_alignment(directory.entries, cursor);
  for (int64_t i = 0; i < num_tensors; ++i)
    directory.tensors.push_back(parse_tensor(cursor, alignment));
  place_tensors(directory.tensors, alignment, static_cast<int64_t>(bytes.size()), cursor);
  return directory;
}

}  // namespace medusa
