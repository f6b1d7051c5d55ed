#include "heads/foreign/export_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "backbone/files/hf_export.h"
#include "backbone/files/model_files.h"
#include "backbone/files/safetensors.h"
#include "backbone/weights.h"
#include "base/durable_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"

namespace medusa {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

/// Shards are called model-00001-of-00002.safetensors: a file called model.safetensors would be
/// opened by transformers before the index, and the heads passed over.
std::string shard_name(size_t number, size_t count) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", number, count);
}

/// The model's own shards under their new names, in order; and everything beside them but the
/// weights.
size_t copy_folder(const fs::path& folder, const fs::path& model) {
  const ModelFiles files = open_model_files(model);
  for (const auto& [name, tensor] : files.tensors)
    if (name.starts_with("medusa_head"))
      throw UserError(fmt::format(
          "{}: the model holds heads already ('{}'), expected a model without; export from the "
          "model that this one was made of",
          tensor.file.string(), name));
  const size_t count = files.parts.size();
  for (size_t i = 0; i < count; ++i)
    copy_whole_file(files.parts[i], folder / shard_name(i + 1, count + 1));
  for (const auto& entry : fs::directory_iterator(model)) {
    const fs::path& path = entry.path();
    const bool is_text = path.extension() == ".json" || path.extension() == ".jinja" ||
                         path.extension() == ".txt" || path.extension() == ".model" ||
                         path.filename() == "tokenizer.gguf";
    if (entry.is_regular_file() && is_text && path.filename() != "model.safetensors.index.json")
      copy_whole_file(path, folder / path.filename());
  }
  return count;
}

size_t convert_gguf(const fs::path& folder, const fs::path& model, ProgressFunction progress) {
  write_hf_model(folder,
                 load_weights(model, at::kBFloat16, at::kCPU, QuantKind::None, std::move(progress)),
                 model);
  rename_durably(folder / "model.safetensors", folder / shard_name(1, 2));
  return 1;
}

void write_index(const fs::path& folder, size_t count) {
  json places = json::object();
  int64_t bytes = 0;
  for (size_t i = 1; i <= count; ++i) {
    const std::string name = shard_name(i, count);
    const SafetensorsFile file(folder / name);
    for (const SafetensorsEntry& entry : file.entries()) {
      places[entry.name] = name;
      bytes += static_cast<int64_t>(entry.bytes.size());
    }
  }
  const json index{{"metadata", {{"total_size", bytes}}}, {"weight_map", places}};
  write_file(folder / "model.safetensors.index.json", json_text(index, 2) + "\n");
}

}  // namespace

void write_model_with_heads(const fs::path& folder, const fs::path& model,
                            const std::map<std::string, at::Tensor>& heads,
                            const std::string& config, ProgressFunction progress) {
  const size_t count = fs::is_directory(model) ? copy_folder(folder, model)
                                               : convert_gguf(folder, model, std::move(progress));
  write_tensors(folder / shard_name(count + 1, count + 1), heads, {{"format", "pt"}});
  write_index(folder, count + 1);
  json settings = json::parse(read_file(folder / "config.json"));
  settings.update(json::parse(config));
  write_file(folder / "config.json", json_text(settings, 2) + "\n");
}

}  // namespace medusa
