#include "heads/foreign/head_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/formats/torch_file.h"
#include "base/json_text.h"

namespace medusa {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

/// Keys of a config.json, each read strictly where it is there.
class HintReader {
 public:
  HintReader(const fs::path& file, const json& root) : file_(file), root_(root) {}

  /// The first of the keys that is there.
  std::optional<int64_t> number(std::initializer_list<const char*> keys) const {
    for (const char* key : keys) {
      const json& value = find(key);
      if (value.is_null()) continue;
      if (!value.is_number_unsigned() || value.get<uint64_t>() > (uint64_t{1} << 40U))
        refuse(key, value, "a whole number");
      return value.get<int64_t>();
    }
    return std::nullopt;
  }
  std::optional<bool> flag(const char* key) const {
    const json& value = find(key);
    if (value.is_null()) return std::nullopt;
    if (!value.is_boolean()) refuse(key, value, "true or false");
    return value.get<bool>();
  }
  double real(const char* key, double otherwise) const {
    const json& value = find(key);
    if (value.is_null()) return otherwise;
    if (!value.is_number()) refuse(key, value, "a number");
    return value.get<double>();
  }
  std::string text(const char* key) const {
    const json& value = find(key);
    return value.is_string() ? value.get<std::string>() : std::string();
  }
  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> out;
    if (const json& value = find(key); value.is_array())
      for (const json& each : value)
        if (each.is_string()) out.push_back(each.get<std::string>());
    return out;
  }

 private:
  const json& find(const char* key) const {
    static const json kNothing;
    const auto found = root_.find(key);
    return found == root_.end() ? kNothing : *found;
  }
  [[noreturn]] void refuse(const char* key, const json& value, const char* expected) const {
    throw UserError(
        fmt::format("{}: '{}' is {}, expected {}; correct it, or remove config.json, which is only "
                    "a hint",
                    file_.string(), key, json_text(value).substr(0, 40), expected));
  }

  const fs::path& file_;
  const json& root_;
};

/// ModelOpt keeps its keys in a section; vLLM calls the heads' layers num_hidden_layers.
HeadHints read_hints(const fs::path& file) {
  json root = json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object())
    throw UserError(
        fmt::format("{}: is no JSON object, expected the settings of heads; correct it, or remove "
                    "it: it is only a hint",
                    file.string()));
  if (root.contains("medusa") && root["medusa"].is_object()) root.update(json(root["medusa"]));
  const HintReader in(file, root);
  HeadHints out;
  out.file = file;
  out.model_type = in.text("model_type");
  out.num_heads = in.number({"medusa_num_heads", "num_medusa_heads", "num_heads"});
  out.layers_per_head = in.number({"medusa_num_layers", "num_medusa_layers"});
  if (!out.layers_per_head && out.model_type == "medusa")
    out.layers_per_head = in.number({"num_hidden_layers"});
  out.hidden_size = in.number({"hidden_size"});
  out.vocab_size = in.number({"vocab_size"});
  out.truncated_vocab_size = in.number({"truncated_vocab_size"});
  out.has_bias = in.flag("medusa_fc_bias");
  out.one_output = in.flag("original_lm_head").value_or(false);
  out.logit_scale = in.real("logit_scale", 1);
  out.architectures = in.texts("architectures");
  out.base_model = in.text("base_model_name_or_path");
  return out;
}

bool is_torch_file(const fs::path& file) {
  return file.extension() == ".pt" || file.extension() == ".bin" || file.extension() == ".pth";
}

std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::exists(path))
    throw UserError(fmt::format(
        "{}: no such file or folder, expected published heads; check the path", path.string()));
  if (!fs::is_directory(path)) return {path};
  for (const char* name : {kHeadsSafetensors, kHeadsPt})
    if (fs::exists(path / name)) return {path / name};
  std::set<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".safetensors") found.insert(entry.path());
  if (found.empty() && fs::exists(path / kModelBin)) return {path / kModelBin};
  if (found.empty())
    throw UserError(fmt::format(
        "{}: holds neither {} nor {} nor another .safetensors file, expected heads in one of "
        "these; name the file itself if it is called otherwise",
        path.string(), kHeadsSafetensors, kHeadsPt));
  return {found.begin(), found.end()};
}

template <typename File>
void add_tensors(const fs::path& path, HeadFiles& out) {
  const auto file = std::make_shared<const File>(path);
  out.mapped.push_back(file);
  out.tensors.insert(out.tensors.end(), file->entries().begin(), file->entries().end());
}

}  // namespace

HeadFiles open_head_files(const fs::path& path) {
  HeadFiles out{path, files_of(path), {}, {}, {}};
  for (const fs::path& file : out.files)
    is_torch_file(file) ? add_tensors<TorchFile>(file, out)
                        : add_tensors<SafetensorsFile>(file, out);
  std::sort(out.tensors.begin(), out.tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto twice =
      std::adjacent_find(out.tensors.begin(), out.tensors.end(),
                         [](const auto& a, const auto& b) { return a.name == b.name; });
  if (twice != out.tensors.end())
    throw UserError(fmt::format(
        "{}: tensor '{}' is in two files, expected it once; remove the file that does not belong "
        "here, or name the other one itself",
        path.string(), twice->name));
  const fs::path config = (fs::is_directory(path) ? path : path.parent_path()) / "config.json";
  if (fs::exists(config)) out.hints = read_hints(config);
  return out;
}

}  // namespace medusa
