#include "base/formats/safetensors_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/formats/object_keys.h"
#include "base/json_text.h"

namespace medusa {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr const char* kMetadataKey = "__metadata__";

[[noreturn]] void fail(const fs::path& path, const std::string& found_and_expected) {
  throw UserError(fmt::format("{}: {}; copy or download the file again, or choose another",
                              path.string(), found_and_expected));
}

/// The header as a JSON object, its length checked against the file.
json parse_header(const fs::path& path, std::span<const uint8_t> bytes, uint64_t& header_bytes) {
  if (bytes.size() < kLengthBytes)
    fail(path, fmt::format("has {} bytes, a safetensors file has at least 8", bytes.size()));
  header_bytes = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) header_bytes |= uint64_t{bytes[i]} << (8 * i);
  if (header_bytes > kMaxHeaderBytes)
    fail(path, fmt::format("the first 8 bytes announce a header of {} bytes, expected at most {}: "
                           "this is no safetensors file",
                           header_bytes, kMaxHeaderBytes));
  if (header_bytes > bytes.size() - kLengthBytes)
    fail(path, fmt::format("the header should have {} bytes, but only {} follow: the file is cut "
                           "short or no safetensors file",
                           header_bytes, bytes.size() - kLengthBytes));
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + kLengthBytes;
  if (nests_too_deeply({text, header_bytes}))
    fail(path, "the safetensors header nests more than 100 deep, expected an object of tensors");
  if (const auto repeated = read_object_keys({text, header_bytes}).repeated)
    fail(path, fmt::format("the safetensors header has the name '{}' twice, expected each once",
                           *repeated));
  json header;
  try {
    header = json::parse(text, text + header_bytes);
  } catch (const json::exception&) {
    fail(path, "the safetensors header is not JSON, expected an object of tensors");
  }
  if (!header.is_object())
    fail(path, fmt::format("the safetensors header is a JSON {}, expected an object of tensors",
                           header.type_name()));
  return header;
}

std::map<std::string, std::string> parse_metadata(const fs::path& path, const json& node) {
  std::map<std::string, std::string> metadata;
  if (!node.is_object())
    fail(path, fmt::format("'{}' is a JSON {}, expected an object of texts", kMetadataKey,
                           node.type_name()));
  for (const auto& [key, value] : node.items()) {
    if (!value.is_string())
      fail(path, fmt::format("'{}' holds a {} under '{}', expected a text", kMetadataKey,
                             value.type_name(), key));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// A list of whole numbers that are not negative and fit in 63 bits.
bool parse_sizes(const json& node, std::vector<int64_t>& sizes) {
  if (!node.is_array()) return false;
  for (const json& each : node) {
    if (!each.is_number_unsigned() || each.get<uint64_t>() >> 63 != 0) return false;
    sizes.push_back(each.get<int64_t>());
  }
  return true;
}

/// Bytes of an array; false if the number does not fit.
bool array_bytes(const SafetensorsEntry& entry, int64_t& bytes) {
  bytes = safetensors_item_size(entry.dtype);
  // Zeros first: an empty array is fine whatever its other sizes multiply to.
  if (std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end()) {
    bytes = 0;
    return true;
  }
  for (const int64_t size : entry.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return false;
  return true;
}

SafetensorsEntry parse_entry(const fs::path& path, const std::string& name, const json& node,
                             std::span<const uint8_t> data) {
  SafetensorsEntry entry{name, {}, {}, {}};
  std::vector<int64_t> offsets;
  if (!node.is_object() || !node.contains("dtype") || !node["dtype"].is_string() ||
      !node.contains("shape") || !parse_sizes(node["shape"], entry.shape) ||
      !node.contains("data_offsets") || !parse_sizes(node["data_offsets"], offsets) ||
      offsets.size() != 2)
    fail(path, fmt::format("tensor '{}' is not described as expected: a dtype, a shape and two "
                           "data_offsets",
                           name));
  entry.dtype = node["dtype"].get<std::string>();
  if (safetensors_item_size(entry.dtype) == 0)
    fail(path,
         fmt::format("tensor '{}' has dtype '{}', expected one of the format's, like F32 or BF16",
                     name, entry.dtype));
  const auto size = static_cast<int64_t>(data.size());
  if (offsets[0] > offsets[1] || offsets[1] > size)
    fail(path, fmt::format("tensor '{}' claims bytes {} to {}, but the file's data has {} bytes",
                           name, offsets[0], offsets[1], size));
  int64_t expected = 0;
  if (!array_bytes(entry, expected))
    fail(path, fmt::format("tensor '{}' has more elements than fit in any file", name));
  if (offsets[1] - offsets[0] != expected)
    fail(path,
         fmt::format("tensor '{}' claims {} bytes, but {} [{}] needs {}", name,
                     offsets[1] - offsets[0], entry.dtype, fmt::join(entry.shape, ", "), expected));
  entry.bytes = data.subspan(static_cast<size_t>(offsets[0]), static_cast<size_t>(expected));
  return entry;
}

/// The arrays must lie one behind the other and fill the data, as the format demands.
void check_layout(const fs::path& path, std::span<const SafetensorsEntry> entries,
                  std::span<const uint8_t> data) {
  std::vector<const SafetensorsEntry*> order;
  for (const auto& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->bytes.data(), a->bytes.size()) <
           std::pair(b->bytes.data(), b->bytes.size());
  });
  const uint8_t* end = data.data();
  const SafetensorsEntry* previous = nullptr;
  for (const auto* entry : order) {
    if (entry->bytes.data() < end)
      fail(path, fmt::format("tensors '{}' and '{}' overlap, expected one behind the other",
                             previous->name, entry->name));
    if (entry->bytes.data() > end)
      fail(path, fmt::format("{} bytes before tensor '{}' belong to no tensor, expected none",
                             entry->bytes.data() - end, entry->name));
    end = entry->bytes.data() + entry->bytes.size();
    previous = entry;
  }
  const auto rest = data.data() + data.size() - end;
  if (rest != 0)
    fail(path, fmt::format("{} bytes at the end belong to no tensor, expected none", rest));
}

std::string header_text(std::span<const SafetensorsEntry* const> layout,
                        const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  uint64_t offset = 0;
  for (const auto* entry : layout) {
    const uint64_t end = offset + entry->bytes.size();
    header[entry->name] = {
        {"dtype", entry->dtype}, {"shape", entry->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data starts aligned
  return text;
}

std::string_view as_text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

int64_t safetensors_item_size(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, int64_t>, 15> kSizes{{
      {"BOOL", 1},
      {"U8", 1},
      {"I8", 1},
      {"F8_E4M3", 1},
      {"F8_E5M2", 1},
      {"I16", 2},
      {"U16", 2},
      {"F16", 2},
      {"BF16", 2},
      {"I32", 4},
      {"U32", 4},
      {"F32", 4},
      {"I64", 8},
      {"U64", 8},
      {"F64", 8},
  }};
  for (const auto& [name, size] : kSizes)
    if (name == dtype) return size;
  return 0;
}

SafetensorsFile::SafetensorsFile(const fs::path& path) : file_(path) {
  uint64_t header_bytes = 0;
  const json header = parse_header(path, file_.bytes(), header_bytes);
  const auto data = file_.bytes().subspan(kLengthBytes + header_bytes);
  for (const auto& [name, node] : header.items()) {  // nlohmann keeps keys sorted
    if (name == kMetadataKey)
      metadata_ = parse_metadata(path, node);
    else
      entries_.push_back(parse_entry(path, name, node, data));
  }
  check_layout(path, entries_, data);
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found =
      std::lower_bound(entries_.begin(), entries_.end(), name,
                       [](const auto& entry, std::string_view key) { return entry.name < key; });
  return found != entries_.end() && found->name == name ? &*found : nullptr;
}

void write_safetensors(const fs::path& path, std::span<const SafetensorsEntry> entries,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const SafetensorsEntry*> layout;
  std::set<std::string> names;
  for (const auto& entry : entries) {
    int64_t bytes = 0;
    MEDUSA_ASSERT(safetensors_item_size(entry.dtype) > 0, entry.name, entry.dtype);
    MEDUSA_ASSERT(array_bytes(entry, bytes) && bytes == static_cast<int64_t>(entry.bytes.size()),
                  entry.name, entry.bytes.size());
    MEDUSA_ASSERT(entry.name != kMetadataKey && names.insert(entry.name).second, entry.name);
    layout.push_back(&entry);
  }
  std::sort(layout.begin(), layout.end(), [](const auto* a, const auto* b) {
    return std::pair(-safetensors_item_size(a->dtype), std::string_view(a->name)) <
           std::pair(-safetensors_item_size(b->dtype), std::string_view(b->name));
  });
  const std::string header = header_text(layout, metadata);
  std::string length(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i)
    length[i] = static_cast<char>((uint64_t{header.size()} >> (8 * i)) & 0xff);
  std::vector<std::string_view> parts{length, header};
  for (const auto* entry : layout) parts.push_back(as_text(entry->bytes));
  write_file(path, parts);
}

}  // namespace medusa
