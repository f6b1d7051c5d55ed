// A model's settings from the config.json of a Hugging Face folder.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backbone/files/dequantize.h"
#include "backbone/files/hf_sizes.h"
#include "backbone/files/json_settings.h"
#include "backbone/files/model_config_check.h"
#include "backbone/model_config.h"
#include "base/error.h"
#include "base/json_text.h"

namespace medusa {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

/// Layers whose queries and keys are not rotated: a list says 1 for those that do.
std::vector<bool> read_no_rope(const JsonSettings& file, const Architecture& architecture,
                               const ModelConfig& config) {
  if (architecture.no_rope_interval == 0) return {};
  constexpr const char* kList = "no_rope_layers";
  if (const json* list = file.find(kList)) {
    std::vector<bool> layers;
    for (const json& each : list->is_array() ? *list : json::array()) {
      if (!each.is_number_integer()) file.mistyped(kList, *list, "a list of 0 and 1");
      layers.push_back(each.get<int64_t>() == 0);
    }
    if (std::ssize(layers) < config.num_layers)
      file.mistyped(kList, *list,
                    fmt::format("0 or 1 for each of {} layers", config.num_layers).c_str());
    layers.resize(static_cast<size_t>(config.num_layers));
    return layers;
  }
  constexpr const char* kInterval = "no_rope_layer_interval";
  const int64_t interval = file.integer(kInterval, architecture.no_rope_interval);
  if (interval < 1) file.fail(fmt::format("'{}' is {}, expected 1 or more", kInterval, interval));
  return no_rope_layers(config.num_layers, interval);
}

/// Whether a layer sees only the last tokens, where use_sliding_window is set.
bool slides(const JsonSettings& file, const ModelConfig& config, int64_t layer) {
  constexpr const char* kTypes = "layer_types";
  if (const json* types = file.find(kTypes)) {
    const json* type = types->is_array() && layer < std::ssize(*types)
                           ? &(*types)[static_cast<size_t>(layer)]
                           : nullptr;
    if (type == nullptr || !type->is_string())
      file.mistyped(kTypes, *types, fmt::format("{} names", config.num_layers).c_str());
    return *type == "sliding_attention";
  }
  return config.no_rope.empty() ? layer >= file.integer("max_window_layers", 28)
                                : !config.uses_rope(layer);
}

/// @returns  empty where no layer's window is shorter than the context.
std::vector<int64_t> read_windows(const JsonSettings& file, const Architecture& architecture,
                                  const ModelConfig& config) {
  constexpr const char* kKey = "sliding_window";
  const bool switched = architecture.windows == WindowRule::Switched;
  const int64_t unsaid = file.contains(kKey) ? 0 : architecture.window;  // null says: none
  if (architecture.windows == WindowRule::Never || (!file.find(kKey) && unsaid == 0)) return {};
  if (switched && !file.flag("use_sliding_window")) return {};
  const int64_t window = file.integer(kKey, unsaid);
  if (window < 1) file.fail(fmt::format("'{}' is {}, expected 1 or more, or none", kKey, window));
  if (window >= config.context) return {};
  std::vector<int64_t> windows;
  for (int64_t layer = 0; layer < config.num_layers; ++layer)
    windows.push_back(!switched || slides(file, config, layer) ? window : 0);
  if (std::ranges::count(windows, 0) == config.num_layers) windows.clear();
  return windows;
}

/// Weights are read as numbers, of fp8 also those with a scale for each block of 128 x 128.
void check_quantization(const JsonSettings& file, const fs::path& folder) {
  const json* settings = file.find("quantization_config");
  if (settings == nullptr) return;
  const json method = settings->is_object() ? settings->value("quant_method", json()) : json();
  if (method != "fp8")
    throw UserError(fmt::format(
        "{}: 'quantization_config' says that the weights are quantized by {}, expected plain "
        "numbers or fp8; use the model as it was before that, or a GGUF file of it",
        (folder / "config.json").string(), json_text(method)));
  const json blocks = settings->value("weight_block_size", json());
  if (!blocks.is_null() && blocks != json::array({kFp8Block, kFp8Block}))
    file.fail(fmt::format("'weight_block_size' is {}, expected [{}, {}]", json_text(blocks),
                          kFp8Block, kFp8Block));
}

const Architecture& read_architecture(const JsonSettings& file, ModelConfig& config) {
  const std::string type = file.text("model_type");
  const Architecture* architecture = find_architecture(type);
  if (architecture == nullptr)
    file.fail(fmt::format("'model_type' is '{}', expected {}", type, architecture_names(false)));
  if (const json* names = file.find("architectures");
      names && *names != json::array({std::string(architecture->class_name)}))
    file.fail(fmt::format("'architectures' is {}, expected [\"{}\"]", json_text(*names),
                          architecture->class_name));
  if (const std::string act = file.text("hidden_act"); act != "silu")
    file.fail(fmt::format("'hidden_act' is '{}', expected silu", act));
  for (const char* bias : {"attention_bias", "mlp_bias"})
    if (file.flag(bias))
      file.fail(
          fmt::format("'{}' is true, expected false: medusa runs such layers without bias", bias));
  config.architecture = architecture->name;
  config.qkv_bias = architecture->qkv_bias;
  config.qk_norm = architecture->qk_norm;
  return *architecture;
}

}  // namespace

ModelConfig read_hf_config(const fs::path& folder) {
  const JsonSettings file(folder / "config.json");
  ModelConfig config;
  const Architecture& architecture = read_architecture(file, config);
  check_quantization(file, folder);
  config.num_layers = file.integer("num_hidden_layers");
  config.context = file.integer("max_position_embeddings");
  config.tied_output = file.flag("tie_word_embeddings", architecture.tied_output);
  config.eos = file.token_ids("eos_token_id");
  // Chat models list further end tokens in the settings of generation.
  if (const fs::path more = folder / "generation_config.json"; fs::exists(more))
    for (const TokenId id : JsonSettings(more).token_ids("eos_token_id"))
      if (std::find(config.eos.begin(), config.eos.end(), id) == config.eos.end())
        config.eos.push_back(id);
  read_hf_sizes(file, architecture, config);
  config.no_rope = read_no_rope(file, architecture, config);
  config.windows = read_windows(file, architecture, config);
  return config;
}

}  // namespace medusa
