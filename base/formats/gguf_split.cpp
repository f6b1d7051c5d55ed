#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/formats/gguf_parse.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostParts = 99999;  // what the five digits of a name can count

std::optional<int64_t> find_number(const std::vector<GgufEntry>& entries, std::string_view key,
                                   const fs::path& path) {
  for (const GgufEntry& entry : entries) {
    if (entry.key != key) continue;
    int64_t value = 0;
    if (const char* expected = read_gguf_value(entry, value))
      throw UserError(
          fmt::format("{}: the metadata key '{}' is {}, expected {}; download the model again",
                      path.string(), key, describe(entry), expected));
    return value;
  }
  return std::nullopt;
}

/// How the names of all parts of a model end.
std::string ending(int64_t index, int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", index + 1, count);
}

}  // namespace

GgufSplit read_gguf_split(const std::vector<GgufEntry>& entries, const fs::path& path) {
  GgufSplit split;
  split.count = find_number(entries, "split.count", path).value_or(1);
  const int64_t index = find_number(entries, "split.no", path).value_or(0);
  if (split.count < 2 && index == 0) return {};
  if (split.count < 1 || split.count > kMostParts || index < 0 || index >= split.count)
    throw UserError(
        fmt::format("{}: says that it is part {} of {}, expected one of 1 to {} parts; download "
                    "the model again",
                    path.string(), index + 1, split.count, kMostParts));
  if (index != 0)
    throw UserError(
        fmt::format("{}: is part {} of a model in {} files, expected the first, which has its "
                    "settings; give the file whose name ends in '{}'",
                    path.string(), index + 1, split.count, ending(0, split.count)));
  if (!path.filename().string().ends_with(ending(0, split.count)))
    throw UserError(
        fmt::format("{}: is the first of {} parts, expected a name that ends in '{}', by which the "
                    "others are found; name all parts as they were published",
                    path.string(), split.count, ending(0, split.count)));
  split.num_tensors = find_number(entries, "split.tensors.count", path);
  return split;
}

fs::path gguf_part(const fs::path& first, int64_t index, const GgufSplit& split) {
  std::string name = first.filename().string();
  name.resize(name.size() - ending(0, split.count).size());
  fs::path part = first.parent_path() / (name + ending(index, split.count));
  if (!fs::exists(part))
    throw UserError(
        fmt::format("{}: no such file, expected part {} of {} beside the first; download all parts "
                    "into one folder",
                    part.string(), index + 1, split.count));
  return part;
}

void check_gguf_part(const std::vector<GgufEntry>& entries, const fs::path& path, int64_t index,
                     const GgufSplit& split) {
  const auto count = find_number(entries, "split.count", path).value_or(1);
  const auto found = find_number(entries, "split.no", path).value_or(0);
  if (count != split.count || found != index)
    throw UserError(
        fmt::format("{}: says that it is part {} of {}, expected part {} of {}; download all parts "
                    "again",
                    path.string(), found + 1, count, index + 1, split.count));
}

}  // namespace medusa
