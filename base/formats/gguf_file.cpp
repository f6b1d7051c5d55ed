#include "base/formats/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/formats/gguf_parse.h"

namespace medusa {
namespace {

/// Indices of items sorted by their text; two with the same text are an error of the file.
template <typename Item, typename Text>
std::vector<size_t> sorted_by(const std::vector<Item>& items, const Text& text,
                              const std::filesystem::path& path, std::string_view what) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return text(items[a]) < text(items[b]); });
  for (size_t i = 1; i < order.size(); ++i)
    if (text(items[order[i]]) == text(items[order[i - 1]]))
      throw UserError(
          fmt::format("{}: {} '{}' is there twice, expected once; the file is damaged, convert or "
                      "download it again",
                      path.string(), what, text(items[order[i]])));
  return order;
}

template <typename Item, typename Text>
const Item* find_sorted(const std::vector<Item>& items, const std::vector<size_t>& order,
                        const Text& text, std::string_view wanted) {
  const auto at =
      std::lower_bound(order.begin(), order.end(), wanted,
                       [&](size_t i, std::string_view name) { return text(items[i]) < name; });
  if (at == order.end() || text(items[*at]) != wanted) return nullptr;
  return &items[*at];
}

constexpr auto kKey = [](const GgufEntry& entry) { return entry.key; };
constexpr auto kName = [](const GgufTensor& tensor) { return tensor.name; };

}  // namespace

int64_t GgufTensor::num_elements() const {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

GgufFile::GgufFile(const std::filesystem::path& path) {
  files_.emplace_back(path);
  GgufDirectory directory = parse_gguf(files_[0].bytes(), path);
  version_ = directory.version;
  entries_ = std::move(directory.entries);
  tensors_ = std::move(directory.tensors);
  entry_order_ = sorted_by(entries_, kKey, path, "the metadata key");
  open_parts();
  tensor_order_ = sorted_by(tensors_, kName, path, "the tensor");
}

/// Adds the tensors of the other parts, if the file is the first of several.
void GgufFile::open_parts() {
  const GgufSplit split = read_gguf_split(entries_, path());
  for (int64_t i = 1; i < split.count; ++i) {
    const std::filesystem::path part = gguf_part(path(), i, split);
    files_.emplace_back(part);
    GgufDirectory directory = parse_gguf(files_.back().bytes(), part);
    check_gguf_part(directory.entries, part, i, split);
    for (GgufTensor& tensor : directory.tensors) {
      tensor.part = static_cast<size_t>(i);
      tensors_.push_back(std::move(tensor));
    }
  }
  if (split.num_tensors && *split.num_tensors != std::ssize(tensors_))
    throw UserError(fmt::format(
        "{}: its {} parts hold {} tensors, expected {} as it says; download all parts again",
        path().string(), split.count, tensors_.size(), *split.num_tensors));
}

std::vector<std::filesystem::path> GgufFile::parts() const {
  std::vector<std::filesystem::path> paths;
  for (const MappedFile& file : files_) paths.push_back(file.path());
  return paths;
}

const GgufEntry* GgufFile::find_entry(std::string_view key) const {
  return find_sorted(entries_, entry_order_, kKey, key);
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  return find_sorted(tensors_, tensor_order_, kName, name);
}

const GgufTensor& GgufFile::required_tensor(std::string_view name) const {
  if (const auto* tensor = find_tensor(name)) return *tensor;
  throw UserError(fmt::format(
      "{}: has no tensor '{}', which is needed; use a GGUF file of the whole model, of an "
      "architecture that this program runs",
      path().string(), name));
}

std::span<const uint8_t> GgufFile::data(const GgufTensor& tensor) const {
  return files_[tensor.part].bytes().subspan(static_cast<size_t>(tensor.offset),
                                             static_cast<size_t>(tensor.bytes));
}

template <typename T>
std::optional<T> GgufFile::find(std::string_view key) const {
  const auto* entry = find_entry(key);
  if (entry == nullptr) return std::nullopt;
  T value{};
  if (const char* expected = read_gguf_value(*entry, value))
    throw UserError(fmt::format(
        "{}: the metadata key '{}' is {}, expected {}; convert or download the model again",
        path().string(), key, describe(*entry), expected));
  return value;
}

template <typename T>
T GgufFile::required(std::string_view key) const {
  if (auto value = find<T>(key)) return *std::move(value);
  throw UserError(fmt::format(
      "{}: has no metadata key '{}', which is needed; convert the model again with a converter "
      "that writes it, or use another file",
      path().string(), key));
}

template std::optional<int64_t> GgufFile::find(std::string_view) const;
template std::optional<double> GgufFile::find(std::string_view) const;
template std::optional<bool> GgufFile::find(std::string_view) const;
template std::optional<std::string> GgufFile::find(std::string_view) const;
template std::optional<std::vector<int64_t>> GgufFile::find(std::string_view) const;
template std::optional<std::vector<double>> GgufFile::find(std::string_view) const;
template std::optional<std::vector<bool>> GgufFile::find(std::string_view) const;
template std::optional<std::vector<std::string>> GgufFile::find(std::string_view) const;
template int64_t GgufFile::required(std::string_view) const;
template double GgufFile::required(std::string_view) const;
template bool GgufFile::required(std::string_view) const;
template std::string GgufFile::required(std::string_view) const;
template std::vector<int64_t> GgufFile::required(std::string_view) const;
template std::vector<double> GgufFile::required(std::string_view) const;
template std::vector<std::string> GgufFile::required(std::string_view) const;

}  // namespace medusa
