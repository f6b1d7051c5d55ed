#include "base/formats/torch_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/formats/pickle.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kTensor = "torch._utils _rebuild_tensor_v2";
constexpr std::string_view kParameter = "torch._utils _rebuild_parameter";
constexpr std::string_view kDict = "collections OrderedDict";

std::vector<std::string_view> allowed_globals() {
  std::vector<std::string_view> all{kTensor, kParameter, kDict};
  for (const TorchStorage& each : kTorchStorages) all.push_back(each.global);
  return all;
}

[[noreturn]] void refuse_torch_file(const fs::path& path, const std::string& found_and_expected) {
  throw UserError(fmt::format(
      "{}: {}; save a dict of tensors with torch.save or as safetensors, or choose another file",
      path.string(), found_and_expected));
}

/// The pickle's values as tensors of the archive.
class TensorReader {
 public:
  TensorReader(const ZipFile& zip, std::string prefix, const Pickle& pickle)
      : zip_(zip), prefix_(std::move(prefix)), pickle_(pickle) {}

  std::vector<SafetensorsEntry> entries();

 private:
  struct Storage {
    std::string_view dtype;
    std::span<const uint8_t> bytes;
  };

  SafetensorsEntry tensor(const std::string& name, const PickleValue& value);
  Storage storage(const std::string& name, const PickleValue& value);
  std::span<const uint8_t> member(const std::string& key);
  std::vector<int64_t> sizes(const std::string& name, const PickleValue& value) const;
  /// The arguments of a call of this name; null for anything else.
  const PickleValue* arguments(const PickleValue& value, std::string_view global,
                               size_t at_least) const;
  [[noreturn]] void unlike(const std::string& name) const {
    refuse_torch_file(zip_.path(),
                      fmt::format("'{}' is not described as a tensor, expected a dense one", name));
  }

  const ZipFile& zip_;
  std::string prefix_;
  const Pickle& pickle_;
  std::map<std::string, std::span<const uint8_t>> checked_;  // members by key
};

const PickleValue* TensorReader::arguments(const PickleValue& value, std::string_view global,
                                           size_t at_least) const {
  if (value.kind != Kind::Call || pickle_.item(value, 0).text != global) return nullptr;
  const PickleValue& list = pickle_.item(value, 1);
  return list.items.size() >= at_least ? &list : nullptr;
}

std::vector<int64_t> TensorReader::sizes(const std::string& name, const PickleValue& value) const {
  constexpr size_t kMostDimensions = 8;
  if (value.kind != Kind::Tuple || value.items.size() > kMostDimensions) unlike(name);
  std::vector<int64_t> out;
  for (const PickleIndex index : value.items) {
    const PickleValue& each = pickle_.at(index);
    if (each.kind != Kind::Integer || each.integer < 0) unlike(name);
    out.push_back(each.integer);
  }
  return out;
}

std::span<const uint8_t> TensorReader::member(const std::string& key) {
  const auto found = checked_.find(key);
  if (found != checked_.end()) return found->second;
  return checked_[key] = zip_.read(prefix_ + "data/" + key);
}

/// ('storage', type, key, device, number of elements)
TensorReader::Storage TensorReader::storage(const std::string& name, const PickleValue& value) {
  if (value.kind != Kind::Persistent) unlike(name);
  const PickleValue& id = pickle_.item(value, 0);
  constexpr size_t kMostKeyBytes = 32;  // keys are numbers
  if (id.kind != Kind::Tuple || id.items.size() != 5 || pickle_.item(id, 0).text != "storage" ||
      pickle_.item(id, 1).kind != Kind::Global || pickle_.item(id, 2).kind != Kind::Text ||
      pickle_.item(id, 2).text.size() > kMostKeyBytes)
    unlike(name);
  const auto type = std::find_if(
      kTorchStorages.begin(), kTorchStorages.end(),
      [&](const TorchStorage& each) { return each.global == pickle_.item(id, 1).text; });
  if (type == kTorchStorages.end()) unlike(name);
  return {type->dtype, member(std::string(pickle_.item(id, 2).text))};
}

/// Bytes of so many elements; none if that fits in no file.
std::optional<uint64_t> byte_count(const std::vector<int64_t>& shape, int64_t item_size) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t bytes = item_size;
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

bool lies_in_one_piece(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

/// (storage, offset, sizes, strides, …), or a parameter around one.
SafetensorsEntry TensorReader::tensor(const std::string& name, const PickleValue& value) {
  const PickleValue* call = &value;
  if (const PickleValue* inside = arguments(value, kParameter, 1)) call = &pickle_.item(*inside, 0);
  const PickleValue* parts = arguments(*call, kTensor, 4);
  if (parts == nullptr) unlike(name);
  const Storage stored = storage(name, pickle_.item(*parts, 0));
  const PickleValue& offset = pickle_.item(*parts, 1);
  SafetensorsEntry out{name, std::string(stored.dtype), sizes(name, pickle_.item(*parts, 2)), {}};
  const std::vector<int64_t> strides = sizes(name, pickle_.item(*parts, 3));
  const int64_t item_size = safetensors_item_size(stored.dtype);
  const auto bytes = byte_count(out.shape, item_size);
  const auto begin = byte_count({offset.integer}, item_size);
  if (offset.kind != Kind::Integer || offset.integer < 0 || strides.size() != out.shape.size())
    unlike(name);
  if (!bytes || !begin || *begin > stored.bytes.size() || *bytes > stored.bytes.size() - *begin)
    refuse_torch_file(zip_.path(),
                      fmt::format("tensor '{}' reaches past its {} stored bytes, expected them to "
                                  "hold it",
                                  name, stored.bytes.size()));
  if (*bytes > 0 && !lies_in_one_piece(out.shape, strides))
    refuse_torch_file(zip_.path(),
                      fmt::format("tensor '{}' does not lie in one piece, expected .contiguous() "
                                  "tensors",
                                  name));
  out.bytes = stored.bytes.subspan(static_cast<size_t>(*begin), static_cast<size_t>(*bytes));
  return out;
}

std::vector<SafetensorsEntry> TensorReader::entries() {
  const PickleValue& root = pickle_.root();
  if (root.kind != Kind::Dict)
    refuse_torch_file(zip_.path(), "holds something else, expected a dict of tensors");
  std::map<std::string, SafetensorsEntry> sorted;
  for (size_t i = 0; i < root.items.size(); i += 2) {
    const PickleValue& key = pickle_.item(root, i);
    constexpr size_t kMostNameBytes = 1024;
    if (key.kind != Kind::Text || key.text.size() > kMostNameBytes)
      refuse_torch_file(zip_.path(), "has a key that is no name, expected names of tensors");
    const std::string name(key.text);
    if (!sorted.emplace(name, tensor(name, pickle_.item(root, i + 1))).second)
      refuse_torch_file(zip_.path(),
                        fmt::format("has the name '{}' twice, expected each once", name));
  }
  std::vector<SafetensorsEntry> out;
  out.reserve(sorted.size());
  for (auto& [name, entry] : sorted) out.push_back(std::move(entry));
  return out;
}

/// The archive's folder, with its slash: members are called like archive/data.pkl.
std::string prefix_of(const ZipFile& zip) {
  constexpr std::string_view kPickle = "/data.pkl";
  for (const auto& [name, member] : zip.members())
    if (name.ends_with(kPickle)) return name.substr(0, name.size() - kPickle.size() + 1);
  refuse_torch_file(zip.path(), "is a zip archive without data.pkl, expected a file of torch.save");
}

}  // namespace

TorchFile::TorchFile(const fs::path& path) : zip_(path) {
  const std::string prefix = prefix_of(zip_);
  constexpr std::string_view kLittle = "little";
  if (const std::string order = prefix + "byteorder"; zip_.members().contains(order))
    if (const auto bytes = zip_.read(order);
        !std::equal(bytes.begin(), bytes.end(), kLittle.begin(), kLittle.end()))
      refuse_torch_file(path,
                        "was written on a big-endian machine, expected little-endian numbers");
  const Pickle pickle(zip_.read(prefix + "data.pkl"), path.string(), allowed_globals());
  entries_ = TensorReader(zip_, prefix, pickle).entries();
}

}  // namespace medusa
