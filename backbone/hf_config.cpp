// A model's settings from the config.json of a Hugging Face folder.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backbone/model_config.h"
#include "backbone/model_config_check.h"
#include "backbone/rope_scaling.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_nesting.h"

namespace medusa {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

/// One JSON file of a model folder; every question about a key ends in a value or a UserError.
class JsonFile {
 public:
  explicit JsonFile(fs::path path) : path_(std::move(path)) {
    const std::string text = read_file(path_);
    if (!nests_too_deeply(text)) root_ = json::parse(text, nullptr, /*allow_exceptions=*/false);
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

/// A number of the object that describes the rotary embedding.
double rope_number(const JsonFile& file, const json& rope, const char* key) {
  const auto found = rope.find(key);
  if (found == rope.end() || !found->is_number())
    file.fail(fmt::format("the rotary embedding's '{}' is {}, expected a number", key,
                          found == rope.end() ? "missing" : found->dump()));
  return found->get<double>();
}

/// What describes the rotary embedding, or null. Newer files hold the base and the stretching in
/// one object.
const json* find_rope(const JsonFile& file, const char*& where) {
  where = file.find("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const json* rope = file.find(where);
  if (rope && !rope->is_object()) file.mistyped(where, *rope, "an object");
  return rope;
}

std::vector<double> read_rope_factors(const JsonFile& file, const ModelConfig& config) {
  const char* where = nullptr;
  const json* found = find_rope(file, where);
  if (found == nullptr) return {};
  const json& rope = *found;
  const auto named = rope.contains("rope_type") ? rope.find("rope_type") : rope.find("type");
  const std::string type = named == rope.end()  ? "unnamed"
                           : named->is_string() ? named->get<std::string>()
                                                : named->dump();
  if (type == "default") return {};
  if (type == "linear")
    return std::vector<double>(static_cast<size_t>(config.head_size / 2),
                               rope_number(file, rope, "factor"));
  if (type == "llama3")
    return llama3_factors(
        {.factor = rope_number(file, rope, "factor"),
         .low_freq_factor = rope_number(file, rope, "low_freq_factor"),
         .high_freq_factor = rope_number(file, rope, "high_freq_factor"),
         .first_context = rope_number(file, rope, "original_max_position_embeddings")},
        config.head_size, config.rope_base);
  file.fail(
      fmt::format("'{}' asks for '{}', a stretched rotary embedding that medusa does not run, "
                  "expected llama3, linear or none",
                  where, type));
}

double read_rope_base(const JsonFile& file) {
  const char* where = nullptr;
  const json* rope = find_rope(file, where);
  if (rope && rope->contains("rope_theta")) return rope_number(file, *rope, "rope_theta");
  return file.find("rope_theta") ? file.number("rope_theta") : 10000.0;  // Llama's own, not written
}

/// Attention over the last few tokens only, unless that never happens within the context.
void check_window(const JsonFile& file, const Architecture& architecture) {
  const bool used = architecture.name == "qwen2" ? file.flag("use_sliding_window")
                                                 : file.find("sliding_window") != nullptr;
  if (used && file.integer("sliding_window", kMaxSize) < file.integer("max_position_embeddings"))
    file.fail(fmt::format("'sliding_window' is {}, expected none: medusa attends to all tokens",
                          file.integer("sliding_window")));
}

void read_architecture(const JsonFile& file, ModelConfig& config) {
  const std::string type = file.text("model_type");
  const Architecture* architecture = find_architecture(type);
  if (architecture == nullptr)
    file.fail(fmt::format("'model_type' is '{}', expected {}", type, architecture_names(false)));
  if (const json* names = file.find("architectures");
      names && *names != json::array({std::string(architecture->class_name)}))
    file.fail(fmt::format("'architectures' is {}, expected [\"{}\"]", names->dump(),
                          architecture->class_name));
  if (const std::string act = file.text("hidden_act"); act != "silu")
    file.fail(fmt::format("'hidden_act' is '{}', expected silu", act));
  for (const char* bias : {"attention_bias", "mlp_bias"})
    if (file.flag(bias))
      file.fail(
          fmt::format("'{}' is true, expected false: medusa runs such layers without bias", bias));
  check_window(file, *architecture);
  config.architecture = architecture->name;
  config.qkv_bias = architecture->qkv_bias;
}

}  // namespace

ModelConfig read_hf_config(const fs::path& folder) {
  const JsonFile file(folder / "config.json");
  const auto fail = [&](const std::string& text) { file.fail(text); };
  ModelConfig config;
  read_architecture(file, config);
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
  config.rope_factors = read_rope_factors(file, config);
  check_factors(config, fail);
  return config;
}

}  // namespace medusa
