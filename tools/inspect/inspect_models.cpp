// Model files: GGUF, safetensors, Hugging Face folders.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "backbone/files/model_files.h"
#include "backbone/model_config.h"
#include "base/error.h"
#include "base/fingerprint.h"
#include "base/formats/gguf_file.h"
#include "base/formats/safetensors_file.h"
#include "heads/eagle3/eagle3_folder.h"
#include "heads/foreign/foreign_heads.h"
#include "runtime/tuned_model.h"
#include "tools/inspect/inspectors.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

int64_t num_elements(const SafetensorsEntry& entry) {
  int64_t product = 1;
  for (const int64_t size : entry.shape) product *= size;
  return product;
}

std::string millions(int64_t parameters) {
  return fmt::format("{:.1f} million parameters", static_cast<double>(parameters) / 1e6);
}

Json describe_model(const ModelConfig& config) {
  return {{"architecture", config.architecture},
          {"num_layers", config.num_layers},
          {"hidden_size", config.hidden_size},
          {"num_heads", config.num_heads},
          {"num_kv_heads", config.num_kv_heads},
          {"head_size", config.head_size},
          {"mlp_size", config.mlp_size},
          {"vocab_size", config.vocab_size},
          {"context_tokens", config.context},
          {"norm_epsilon", config.norm_epsilon},
          {"rope_base", config.rope_base},
          {"tied_output", config.tied_output},
          {"eos", config.eos}};
}

/// The model's dimensions, or why medusa does not run it: a file that we cannot run can still be
/// looked at.
template <typename Read>
void add_model(Json& out, const Read& read) {
  try {
    out["model"] = describe_model(read());
  } catch (const UserError& error) {
    out["cannot_run"] = error.what();
  }
}

/// Heads that another project's layout holds; nothing: these are none.
std::optional<Json> find_published_heads(const fs::path& folder) {
  try {
    const ForeignHeads heads = read_foreign_heads(folder);
    return Json{{"layout", enum_name(heads.layout)},        {"num_heads", heads.num_heads},
                {"layers_per_head", heads.layers_per_head}, {"hidden_size", heads.hidden_size},
                {"output_rows", heads.output_rows},         {"dtype", heads.dtype}};
  } catch (const UserError&) {
    return std::nullopt;
  }
}

Json describe_entry(const SafetensorsEntry& entry) {
  return {{"name", entry.name},
          {"type", entry.dtype},
          {"shape", entry.shape},
          {"size_bytes", entry.bytes.size()}};
}

}  // namespace

Json inspect_gguf(const fs::path& path) {
  const GgufFile file(path);
  TensorTotals totals;
  Json tensors = Json::array();
  for (const GgufTensor& tensor : file.tensors()) {
    const std::string type(ggml_type_info(tensor.type).name);
    totals.add(type, tensor.num_elements(), tensor.bytes);
    const std::vector<int64_t> shape(tensor.dims.rbegin(), tensor.dims.rend());  // outermost first
    tensors.push_back(
        {{"name", tensor.name}, {"type", type}, {"shape", shape}, {"size_bytes", tensor.bytes}});
  }
  Json metadata = Json::object();
  for (const GgufEntry& entry : file.entries()) metadata[std::string(entry.key)] = describe(entry);

  Json out;
  out["summary"] = millions(totals.num_parameters());
  uint64_t bytes = 0;
  for (const fs::path& part : file.parts()) bytes += fs::file_size(part);
  out["size_bytes"] = bytes;
  if (file.parts().size() > 1) out["files"] = file.parts().size();
  out["gguf_version"] = file.version();
  out["fingerprint"] = fingerprint_gguf(file.parts());
  add_model(out, [&] { return read_gguf_config(file); });
  totals.describe(out);
  out["metadata"] = std::move(metadata);
  out["tensors"] = std::move(tensors);
  return out;
}

Json inspect_safetensors(const fs::path& path) {
  const SafetensorsFile file(path);
  TensorTotals totals;
  Json tensors = Json::array();
  for (const SafetensorsEntry& entry : file.entries()) {
    totals.add(entry.dtype, num_elements(entry), static_cast<int64_t>(entry.bytes.size()));
    tensors.push_back(describe_entry(entry));
  }
  Json out;
  out["summary"] =
      fmt::format("{} tensors, {}", totals.num_tensors(), millions(totals.num_parameters()));
  out["size_bytes"] = fs::file_size(path);
  totals.describe(out);
  if (!file.metadata().empty()) out["metadata"] = file.metadata();
  out["tensors"] = std::move(tensors);
  return out;
}

Json inspect_hugging_face(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  TensorTotals totals;
  Json files = Json::array();
  for (const fs::path& path : paths) {
    const SafetensorsFile file(path);
    for (const SafetensorsEntry& entry : file.entries())
      totals.add(entry.dtype, num_elements(entry), static_cast<int64_t>(entry.bytes.size()));
    files.push_back({{"name", path.filename().string()},
                     {"tensors", file.entries().size()},
                     {"size_bytes", fs::file_size(path)}});
  }
  Json out;
  out["summary"] = millions(totals.num_parameters());
  add_model(out, [&] {
    const ModelFiles model = open_model_files(folder);
    out["fingerprint"] = fingerprint_model(model);
    return model.config;
  });
  if (out.contains("cannot_run"))
    if (auto heads = find_published_heads(folder)) {
      out.erase("cannot_run");
      out["summary"] = fmt::format("{} Medusa heads, {}", heads->at("num_heads").get<int64_t>(),
                                   millions(totals.num_parameters()));
      out["heads"] = *std::move(heads);
    }
  totals.describe(out);
  out["files"] = std::move(files);
  if (const auto tuned = read_tuned_manifest(folder)) out["tuned_from"] = tuned_json(*tuned);
  return out;
}

Json inspect_eagle3(const fs::path& folder) {
  const Eagle3Files files = read_eagle3_files(folder);
  TensorTotals totals;
  for (const SafetensorsEntry& entry : files.tensors)
    totals.add(entry.dtype, num_elements(entry), static_cast<int64_t>(entry.bytes.size()));
  Json out;
  out["summary"] = fmt::format("{} of {} tokens, {}", files.draft_vocab, files.config.vocab_size,
                               millions(totals.num_parameters()));
  out["draft_vocab_size"] = files.draft_vocab;
  out["target_hidden_size"] = files.target_hidden;
  out["feature_layers"] =
      files.feature_layers.empty() ? Json("low, middle and high") : Json(files.feature_layers);
  out["own_embedding"] = files.own_embedding;
  out["model"] = describe_model(files.config);
  totals.describe(out);
  if (fs::exists(folder / kEagle3Manifest)) {
    const Eagle3Manifest manifest = read_eagle3_manifest(folder);
    out["fingerprint"] = manifest.fingerprint;
    out["backbone"] = manifest.backbone;
    out["source"] = manifest.source;
  }
  return out;
}

}  // namespace medusa
