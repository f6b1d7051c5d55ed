#include "backbone/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/gguf_file.h"

namespace medusa {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr const char* kRuns = "expected llama, the only architecture that medusa runs";
constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();

/// One JSON file of a model folder; every question about a key ends in a value or a UserError.
class JsonFile {
 public:
  explicit JsonFile(fs::path path) : path_(std::move(path)) {
    root_ = json::parse(read_file(path_), nullptr, /*allow_exceptions=*/false);
    if (!root_.is_object())
      throw UserError(
          fmt::format("{}: is not a JSON object; copy or download the file again", path_.string()));
  }

  [[noreturn]] void fail(const std::string& found_and_expected) const {
    throw UserError(fmt::format("{}: {}; use the {} that came with the model, or another model",
                                path_.string(), found_and_expected, path_.filename().string()));
  }

  /// Null when the key is missing or its value is null: Hugging Face writes both.
  const json* find(const char* key) const {
    const auto found = root_.find(key);
    return found == root_.end() || found->is_null() ? nullptr : &*found;
  }

  int64_t integer(const char* key) const {
    const json& value = required(key, "a whole number");
    if (!value.is_number_integer()) mistyped(key, value, "a whole number");
    return value.get<int64_t>();
  }
  int64_t integer(const char* key, int64_t otherwise) const {
    return find(key) ? integer(key) : otherwise;
  }
  double number(const char* key) const {
    const json& value = required(key, "a number");
    if (!value.is_number()) mistyped(key, value, "a number");
    return value.get<double>();
  }
  std::string text(const char* key) const {
    const json& value = required(key, "a text");
    if (!value.is_string()) mistyped(key, value, "a text");
    return value.get<std::string>();
  }
  bool flag(const char* key) const {  // false when missing
    const json* value = find(key);
    if (value && !value->is_boolean()) mistyped(key, *value, "true or false");
    return value && value->get<bool>();
  }

  /// A token id or a list of them; empty when missing.
  std::vector<TokenId> token_ids(const char* key) const {
    std::vector<TokenId> ids;
    const json* value = find(key);
    if (!value) return ids;
    for (const json& each : value->is_array() ? *value : json::array({*value})) {
      if (!each.is_number_integer() || each.get<int64_t>() < 0 || each.get<int64_t>() > kMaxSize)
        mistyped(key, *value, "a token id or a list of token ids");
      ids.push_back(each.get<TokenId>());
    }
    return ids;
  }

  [[noreturn]] void mistyped(const char* key, const json& value, const char* expected) const {
    fail(fmt::format("'{}' is {}, expected {}", key, value.dump(), expected));
  }

 private:
  const json& required(const char* key, const char* expected) const {
    const json* value = find(key);
    if (!value) fail(fmt::format("'{}' is missing, expected {}", key, expected));
    return *value;
  }

  fs::path path_;
  json root_;
};

/// The rotary base, after refusing every stretched variant. Newer files hold both in one object.
double read_rope_base(const JsonFile& file) {
  const json* parameters = file.find("rope_parameters");
  const json* scaling = file.find("rope_scaling");
  const json* rope = parameters ? parameters : scaling;
  if (rope) {
    if (!rope->is_object()) file.mistyped("rope_parameters", *rope, "an object");
    const auto named = rope->contains("rope_type") ? rope->find("rope_type") : rope->find("type");
    const std::string type = named == rope->end() ? "unnamed"
                             : named->is_string() ? named->get<std::string>()
                                                  : named->dump();
    if (type != "default")
      file.fail(
          fmt::format("'{}' asks for '{}', a stretched rotary embedding that medusa does "
                      "not run, expected none",
                      parameters ? "rope_parameters" : "rope_scaling", type));
    const auto base = rope->find("rope_theta");
    if (base != rope->end()) {
      if (!base->is_number()) file.mistyped("rope_theta", *base, "a number");
      return base->get<double>();
    }
  }
  return file.find("rope_theta") ? file.number("rope_theta") : 10000.0;  // Llama's own, not written
}

void check_architecture(const JsonFile& file) {
  const std::string type = file.text("model_type");
  if (type != "llama") file.fail(fmt::format("'model_type' is '{}', {}", type, kRuns));
  if (const json* names = file.find("architectures");
      names && *names != json::array({"LlamaForCausalLM"}))
    file.fail(fmt::format("'architectures' is {}, expected [\"LlamaForCausalLM\"]", names->dump()));
  if (const std::string act = file.text("hidden_act"); act != "silu")
    file.fail(fmt::format("'hidden_act' is '{}', expected silu", act));
  for (const char* bias : {"attention_bias", "mlp_bias"})
    if (file.flag(bias))
      file.fail(fmt::format("'{}' is true, expected false: medusa runs layers without bias", bias));
}

/// What no model can have, whichever file said it.
/// @param fail  called with the finding; does not return.
template <typename Fail>
void check_values(const ModelConfig& config, const Fail& fail) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"number of layers", config.num_layers},
      {"hidden size", config.hidden_size},
      {"number of attention heads", config.num_heads},
      {"number of key/value heads", config.num_kv_heads},
      {"head size", config.head_size},
      {"feed-forward size", config.mlp_size},
      {"vocabulary size", config.vocab_size},
      {"context length", config.context}};
  for (const auto& [name, value] : sizes)
    if (value < 1 || value > kMaxSize)
      fail(fmt::format("the {} is {}, expected 1 to {}", name, value, kMaxSize));
  if (config.num_heads % config.num_kv_heads != 0)
    fail(
        fmt::format("{} attention heads do not share {} key/value heads evenly, expected a "
                    "multiple",
                    config.num_heads, config.num_kv_heads));
  if (config.head_size % 2 != 0)
    fail(
        fmt::format("the head size is {}, expected an even number: the rotary embedding turns "
                    "pairs",
                    config.head_size));
  if (!(config.norm_epsilon > 0 && config.norm_epsilon < 1))
    fail(fmt::format("the norm's epsilon is {}, expected a small positive number",
                     config.norm_epsilon));
  if (!(config.rope_base > 1 && std::isfinite(config.rope_base)))
    fail(fmt::format("the rotary base is {}, expected a number above 1", config.rope_base));
  for (const TokenId id : config.eos)
    if (id < 0 || id >= config.vocab_size)
      fail(fmt::format("the end token is {}, expected an id below the vocabulary size {}", id,
                       config.vocab_size));
}

/// H / A, for files that do not say the head size. An unusable A is left to check_values.
template <typename Fail>
int64_t even_share(const ModelConfig& config, const Fail& fail) {
  if (config.num_heads < 1) return 1;
  if (config.hidden_size % config.num_heads != 0)
    fail(
        fmt::format("the hidden size {} is not a multiple of the {} attention heads, and no head "
                    "size is given",
                    config.hidden_size, config.num_heads));
  return config.hidden_size / config.num_heads;
}

/// Keys of a Llama GGUF that ask for something medusa does not run.
template <typename Fail>
void check_gguf_architecture(const GgufFile& file, const Fail& fail) {
  const auto architecture = file.required<std::string>("general.architecture");
  if (architecture != "llama")
    fail(fmt::format("'general.architecture' is '{}', {}", architecture, kRuns));
  if (const auto experts = file.find<int64_t>("llama.expert_count"); experts.value_or(0) > 0)
    fail(
        fmt::format("'llama.expert_count' is {}, a mixture of experts that medusa does not run, "
                    "expected none",
                    *experts));
  const auto scaling = file.find<std::string>("llama.rope.scaling.type").value_or("none");
  if (scaling != "none" || file.find<double>("llama.rope.scale_linear").value_or(1.0) != 1.0 ||
      file.find<double>("llama.rope.scaling.factor").value_or(1.0) != 1.0 ||
      file.find_tensor("rope_freqs.weight") != nullptr)
    fail(
        fmt::format("a stretched rotary embedding (scaling '{}') that medusa does not run, "
                    "expected none",
                    scaling == "none" ? "by factor" : scaling));
}

/// Rows of the embedding; the length of the token list in a file without tensors.
int64_t gguf_vocab_size(const GgufFile& file) {
  if (const GgufTensor* embedding = file.find_tensor("token_embd.weight");
      embedding && embedding->dims.size() == 2)
    return embedding->dims[1];
  for (const GgufEntry& entry : file.entries())
    if (entry.key == "tokenizer.ggml.tokens" && entry.is_array) return entry.count;
  return file.required<int64_t>("llama.vocab_size");
}

}  // namespace

ModelConfig read_hf_config(const fs::path& folder) {
  const JsonFile file(folder / "config.json");
  const auto fail = [&](const std::string& text) { file.fail(text); };
  check_architecture(file);
  ModelConfig config;
  config.architecture = "llama";
  config.num_layers = file.integer("num_hidden_layers");
  config.hidden_size = file.integer("hidden_size");
  config.num_heads = file.integer("num_attention_heads");
  config.num_kv_heads = file.integer("num_key_value_heads", config.num_heads);
  config.head_size = file.find("head_dim") ? file.integer("head_dim") : even_share(config, fail);
  config.mlp_size = file.integer("intermediate_size");
  config.vocab_size = file.integer("vocab_size");
  config.context = file.integer("max_position_embeddings");
  config.norm_epsilon = file.number("rms_norm_eps");
  config.rope_base = read_rope_base(file);
  config.tied_output = file.flag("tie_word_embeddings");
  config.eos = file.token_ids("eos_token_id");
  // Chat models list further end tokens in the settings of generation.
  if (const fs::path more = folder / "generation_config.json"; fs::exists(more))
    for (const TokenId id : JsonFile(more).token_ids("eos_token_id"))
      if (std::find(config.eos.begin(), config.eos.end(), id) == config.eos.end())
        config.eos.push_back(id);
  check_values(config, fail);
  return config;
}

ModelConfig read_gguf_config(const GgufFile& file) {
  const auto fail = [&](const std::string& text) {
    throw UserError(fmt::format("{}: {}; use another model", file.path().string(), text));
  };
  check_gguf_architecture(file, fail);
  ModelConfig config;
  config.architecture = "llama";
  config.num_layers = file.required<int64_t>("llama.block_count");
  config.hidden_size = file.required<int64_t>("llama.embedding_length");
  config.num_heads = file.required<int64_t>("llama.attention.head_count");
  config.num_kv_heads =
      file.find<int64_t>("llama.attention.head_count_kv").value_or(config.num_heads);
  const auto head_size = file.find<int64_t>("llama.attention.key_length");
  config.head_size = head_size ? *head_size : even_share(config, fail);
  const auto turned = file.find<int64_t>("llama.rope.dimension_count").value_or(config.head_size);
  if (turned != config.head_size)
    fail(fmt::format("'llama.rope.dimension_count' is {}, expected the head size {}", turned,
                     config.head_size));
  const auto value_size =
      file.find<int64_t>("llama.attention.value_length").value_or(config.head_size);
  if (value_size != config.head_size)
    fail(fmt::format("'llama.attention.value_length' is {}, expected the head size {}", value_size,
                     config.head_size));
  config.mlp_size = file.required<int64_t>("llama.feed_forward_length");
  config.vocab_size = gguf_vocab_size(file);
  config.context = file.required<int64_t>("llama.context_length");
  config.norm_epsilon = file.required<double>("llama.attention.layer_norm_rms_epsilon");
  config.rope_base = file.find<double>("llama.rope.freq_base").value_or(10000.0);
  config.tied_output = file.find_tensor("output.weight") == nullptr;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
    if (const auto id = file.find<int64_t>(key)) {
      if (*id < 0 || *id >= config.vocab_size)
        fail(fmt::format("'{}' is {}, expected an id below the vocabulary size {}", key, *id,
                         config.vocab_size));
      if (const auto token = static_cast<TokenId>(*id);
          std::find(config.eos.begin(), config.eos.end(), token) == config.eos.end())
        config.eos.push_back(token);
    }
  check_values(config, fail);
  return config;
}

}  // namespace medusa
