// Reading an EAGLE-3 draft as others publish it.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "backbone/architecture.h"
#include "backbone/files/hf_sizes.h"
#include "backbone/files/json_settings.h"
#include "backbone/files/model_config_check.h"
#include "backbone/files/safetensors.h"
#include "backbone/files/tensor_check.h"
#include "base/error.h"
#include "base/file.h"
#include "heads/eagle3/eagle3_folder.h"
#include "heads/foreign/head_files.h"

namespace medusa {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr const char* kLayerIds = "eagle_aux_hidden_state_layer_ids";

fs::path settings_of(const fs::path& path) {
  return (fs::is_directory(path) ? path : path.parent_path()) / "config.json";
}

/// EAGLE's name of a tensor: vLLM and speculators call its layer layers.0.
std::string eagle_name(std::string name) {
  const auto replace = [&name](const std::string& prefix, const char* by) {
    if (name.starts_with(prefix)) name = by + name.substr(prefix.size());
  };
  replace("model.", "");
  replace("layers.0.", "midlayer.");
  return name;
}

[[noreturn]] void refuse_draft(const fs::path& path, const std::string& found_and_expected) {
  throw UserError(fmt::format("{}: {}; use a draft as EAGLE publishes it, or another drafter",
                              path.string(), found_and_expected));
}

/// A list of layers: vLLM's, in the top level, counts the embedding as 0, so that an id is the
/// layer before which it lies. SGLang's, in the section eagle_config, names layers whose output it
/// is.
std::vector<int32_t> read_feature_layers(const JsonSettings& file) {
  const json* list = file.find(kLayerIds);
  int64_t behind = 0;
  if (list == nullptr) {
    const json* section = file.find("eagle_config");
    if (section == nullptr || !section->is_object() || !section->contains(kLayerIds)) return {};
    list = &section->at(kLayerIds);
    behind = 1;
    if (list->is_null()) return {};
  }
  std::vector<int32_t> layers;
  for (const json& each : list->is_array() ? *list : json::array({json()})) {
    if (!each.is_number_integer() || each.get<int64_t>() < 0 || each.get<int64_t>() > kMaxLayers)
      file.mistyped(kLayerIds, *list, "a list of layers");
    layers.push_back(static_cast<int32_t>(each.get<int64_t>() + behind));
  }
  if (std::adjacent_find(layers.begin(), layers.end(), std::greater_equal<>()) != layers.end())
    file.mistyped(kLayerIds, *list, "ascending layers");
  return layers;
}

/// Sizes that only a file's settings say.
ModelConfig read_layer_config(const JsonSettings& file) {
  const Architecture& llama = *find_architecture("llama");
  ModelConfig config;
  config.architecture = llama.name;
  config.num_layers = file.integer("num_hidden_layers", 1);
  if (config.num_layers != 1)
    file.fail(fmt::format("'num_hidden_layers' is {}, expected 1", config.num_layers));
  config.context = file.integer("max_position_embeddings", 2048);
  read_hf_sizes(file, llama, config);
  if (const json* act = file.find("hidden_act"); act != nullptr && *act != "silu")
    file.mistyped("hidden_act", *act, "silu");
  for (const char* key : {"norm_before_residual", "attention_bias", "mlp_bias"})
    if (file.flag(key))
      file.fail(fmt::format("'{}' is true, expected false: medusa runs EAGLE's own layer", key));
  return config;
}

/// Checks every tensor once.
class TensorChecks {
 public:
  explicit TensorChecks(Eagle3Files& files) : files_(files) {}

  /// @param shape  -1 stands for any.
  const SafetensorsEntry& expect(const std::string& name, const std::vector<int64_t>& shape) {
    const SafetensorsEntry* entry = files_.find(name);
    if (entry == nullptr)
      refuse_draft(files_.path, fmt::format("has no tensor '{}', expected it", name));
    known_.insert(name);
    if (!has_shape(entry->shape, shape))
      refuse_draft(files_.path, fmt::format("tensor '{}' has shape {}, expected {}", name,
                                            shape_text(entry->shape), shape_text(shape)));
    if (entry->dtype != "F32" && entry->dtype != "F16" && entry->dtype != "BF16")
      refuse_draft(files_.path,
                   fmt::format("tensor '{}' is {}, expected F32, F16 or BF16", name, entry->dtype));
    return *entry;
  }

  /// One that may be missing, of some dtype.
  const SafetensorsEntry* list(const std::string& name, int64_t size,
                               std::initializer_list<const char*> dtypes) {
    const SafetensorsEntry* entry = files_.find(name);
    if (entry == nullptr) return nullptr;
    known_.insert(name);
    if (!has_shape(entry->shape, {size}) ||
        std::find(dtypes.begin(), dtypes.end(), entry->dtype) == dtypes.end())
      refuse_draft(files_.path,
                   fmt::format("tensor '{}' is {} {}, expected {} [{}]", name, entry->dtype,
                               shape_text(entry->shape), *dtypes.begin(), size));
    return entry;
  }

  void expect_no_others() const {
    for (const SafetensorsEntry& entry : files_.tensors)
      if (!known_.contains(entry.name))
        refuse_draft(files_.path,
                     fmt::format("tensor '{}' is none of an EAGLE-3 draft's, expected these "
                                 "alone",
                                 entry.name));
  }

 private:
  Eagle3Files& files_;
  std::set<std::string> known_;
};

void check_layer(const ModelConfig& c, TensorChecks& tensors) {
  const int64_t h = c.hidden_size, queries = c.num_heads * c.head_size,
                keys = c.num_kv_heads * c.head_size;
  for (const char* norm : {"hidden_norm", "input_layernorm", "post_attention_layernorm"})
    tensors.expect(fmt::format("midlayer.{}.weight", norm), {h});
  tensors.expect("midlayer.self_attn.q_proj.weight", {queries, 2 * h});
  tensors.expect("midlayer.self_attn.k_proj.weight", {keys, 2 * h});
  tensors.expect("midlayer.self_attn.v_proj.weight", {keys, 2 * h});
  tensors.expect("midlayer.self_attn.o_proj.weight", {h, queries});
  tensors.expect("midlayer.mlp.gate_proj.weight", {c.mlp_size, h});
  tensors.expect("midlayer.mlp.up_proj.weight", {c.mlp_size, h});
  tensors.expect("midlayer.mlp.down_proj.weight", {h, c.mlp_size});
  tensors.expect("norm.weight", {h});
}

/// d2t holds what is to be added to a row's number to get its token.
std::vector<TokenId> tokens_of_rows(const Eagle3Files& files) {
  std::vector<TokenId> tokens;
  const SafetensorsEntry* offsets = files.find("d2t");
  const SafetensorsEntry* marks = files.find("t2d");
  std::set<int64_t> seen;
  for (int64_t row = 0; row < files.draft_vocab; ++row) {
    int64_t offset = 0;  // little-endian
    if (offsets != nullptr) std::memcpy(&offset, offsets->bytes.data() + 8 * row, sizeof offset);
    const bool is_near = std::abs(offset / 2) <= files.config.vocab_size;  // the sum does not wrap
    const int64_t token = is_near ? row + offset : -1;
    if (token < 0 || token >= files.config.vocab_size)
      refuse_draft(files.path,
                   fmt::format("'d2t' leads row {} out of the vocabulary, expected tokens below "
                               "{}",
                               row, files.config.vocab_size));
    if (!seen.insert(token).second)
      refuse_draft(files.path,
                   fmt::format("'d2t' names token {} twice, expected a token for each row", token));
    if (marks != nullptr && marks->bytes[static_cast<size_t>(token)] == 0)
      refuse_draft(
          files.path,
          fmt::format("'d2t' names token {}, which 't2d' does not, expected the same", token));
    tokens.push_back(static_cast<TokenId>(token));
  }
  return tokens;
}

/// A tensor in its own type.
at::Tensor finite(const Eagle3Files& files, const std::string& name) {
  at::Tensor out = entry_tensor(*files.find(name));
  if (!out.isfinite().all().item<bool>())
    refuse_draft(
        files.path,
        fmt::format("tensor '{}' holds a number that is not finite, expected numbers", name));
  return out;
}

}  // namespace

const SafetensorsEntry* Eagle3Files::find(const std::string& name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&name](const auto& entry) { return entry.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

bool is_eagle3(const fs::path& path) {
  const fs::path file = settings_of(path);
  if (!fs::is_regular_file(file)) return false;
  const std::string text = read_file(file);
  if (nests_too_deeply(text)) return false;
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return false;
  const auto names = root.find("architectures");
  return root.contains("draft_vocab_size") ||
         (names != root.end() && *names == json::array({"LlamaForCausalLMEagle3"}));
}

Eagle3Files read_eagle3_files(const fs::path& path) {
  Eagle3Files out;
  HeadFiles files = open_head_files(path);
  const fs::path settings = settings_of(path);
  if (!fs::exists(settings))
    throw UserError(fmt::format(
        "{}: no such file, expected the settings of an EAGLE-3 draft; download it beside the "
        "tensors",
        settings.string()));
  out.path = path;
  out.mapped = std::move(files.mapped);
  out.tensors = std::move(files.tensors);
  std::map<std::string, std::string> called;  // in the file
  for (SafetensorsEntry& entry : out.tensors) {
    const std::string name = std::exchange(entry.name, eagle_name(entry.name));
    if (const auto [other, is_new] = called.try_emplace(entry.name, name); !is_new)
      refuse_draft(path, fmt::format("holds '{}' and '{}', which are names of one tensor, expected "
                                     "one of them",
                                     other->second, name));
  }
  std::sort(out.tensors.begin(), out.tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  out.settings = read_file(settings);
  const JsonSettings file(settings);
  out.config = read_layer_config(file);
  out.feature_layers = read_feature_layers(file);
  out.target_hidden = file.integer("target_hidden_size", out.config.hidden_size);
  out.draft_vocab = file.integer("draft_vocab_size", out.config.vocab_size);
  if (out.draft_vocab < 1 || out.draft_vocab > out.config.vocab_size)
    file.fail(fmt::format("'draft_vocab_size' is {}, expected 1 to the vocabulary's {}",
                          out.draft_vocab, out.config.vocab_size));
  if (out.target_hidden < 1 || out.target_hidden > kMaxSize)
    file.fail(fmt::format("'target_hidden_size' is {}, expected 1 or more", out.target_hidden));
  out.num_features = out.feature_layers.empty() ? 3 : std::ssize(out.feature_layers);

  TensorChecks tensors(out);
  const int64_t h = out.config.hidden_size;
  out.dtype = tensors.expect("fc.weight", {h, out.num_features * out.target_hidden}).dtype;
  check_layer(out.config, tensors);
  tensors.expect("lm_head.weight", {out.draft_vocab, h});
  out.own_embedding = out.find("embed_tokens.weight") != nullptr;
  if (out.own_embedding) tensors.expect("embed_tokens.weight", {out.config.vocab_size, h});
  const bool maps = tensors.list("d2t", out.draft_vocab, {"I64"}) != nullptr;
  tensors.list("t2d", out.config.vocab_size, {"BOOL", "U8"});
  tensors.expect_no_others();
  if (!maps && out.draft_vocab != out.config.vocab_size)
    refuse_draft(path, "has no tensor 'd2t', expected the tokens of its smaller vocabulary");
  out.tokens = tokens_of_rows(out);
  return out;
}

std::vector<int32_t> feature_layers_for(const Eagle3Files& files, const ModelConfig& target) {
  const auto misfit = [&files](const char* what, int64_t draft, int64_t model) {
    throw UserError(
        fmt::format("{}: a draft for {} {}, the model has {}, expected a draft of this model; take "
                    "the one that was published for it",
                    files.path.string(), draft, what, model));
  };
  if (files.target_hidden != target.hidden_size)
    misfit("numbers in a hidden state", files.target_hidden, target.hidden_size);
  if (files.config.vocab_size != target.vocab_size)
    misfit("tokens", files.config.vocab_size, target.vocab_size);
  if (!files.own_embedding && files.config.hidden_size != target.hidden_size)
    refuse_draft(files.path,
                 fmt::format("has no embedding and states of {} numbers, expected {} or a "
                             "tensor 'embed_tokens.weight'",
                             files.config.hidden_size, target.hidden_size));
  std::vector<int32_t> layers = files.feature_layers;
  if (layers.empty()) layers = usual_feature_layers(target.num_layers);
  if (layers.empty() || layers.back() > target.num_layers)
    refuse_draft(files.path,
                 fmt::format("reads {} layers, the model has {}, expected layers of it ('{}')",
                             layers.empty() ? "three different" : std::to_string(layers.back()),
                             target.num_layers, kLayerIds));
  return layers;
}

Eagle3Weights eagle3_weights(const Eagle3Files& files, const ModelConfig& target) {
  Eagle3Weights out;
  out.config = files.config;
  out.feature_layers = feature_layers_for(files, target);
  out.tokens = files.tokens;
  const auto read = [&](const char* name) { return finite(files, name); };
  const auto norm = [&](const char* name) { return read(name).to(at::kFloat); };
  out.fuse = read("fc.weight");
  out.token_norm = norm("midlayer.input_layernorm.weight");
  out.state_norm = norm("midlayer.hidden_norm.weight");
  out.layer.qkv =
      at::cat({read("midlayer.self_attn.q_proj.weight"), read("midlayer.self_attn.k_proj.weight"),
               read("midlayer.self_attn.v_proj.weight")});
  out.layer.output = read("midlayer.self_attn.o_proj.weight");
  out.layer.mlp_norm = norm("midlayer.post_attention_layernorm.weight");
  out.layer.gate_up =
      at::cat({read("midlayer.mlp.gate_proj.weight"), read("midlayer.mlp.up_proj.weight")});
  out.layer.down = read("midlayer.mlp.down_proj.weight");
  out.final_norm = norm("norm.weight");
  out.lm_head = read("lm_head.weight");
  if (files.own_embedding) out.embedding = read("embed_tokens.weight");
  return out;
}

}  // namespace medusa
