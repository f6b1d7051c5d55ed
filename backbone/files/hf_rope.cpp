#include "backbone/files/hf_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backbone/files/model_config_check.h"
#include "backbone/rope_scaling.h"
#include "base/json_text.h"

namespace medusa {
using nlohmann::json;
namespace {

/// What describes the rotary embedding. Newer files hold the base and the stretching in one object,
/// older ones the stretching alone, or nothing.
class RopeSettings {
 public:
  explicit RopeSettings(const JsonSettings& file)
      : file_(file), where_(file.find("rope_parameters") ? "rope_parameters" : "rope_scaling") {
    const json* rope = file.find(where_);
    if (rope && !rope->is_object()) file.mistyped(where_, *rope, "an object");
    if (rope) rope_ = *rope;
  }

  const char* where() const { return where_; }
  std::string type() const {
    const json* named = find("rope_type") ? find("rope_type") : find("type");
    if (named == nullptr) return has("factor") ? "unnamed" : "default";
    return named->is_string() ? named->get<std::string>() : json_text(*named);
  }
  bool has(const char* key) const { return find(key) != nullptr; }
  double number(const char* key) const {
    const json* value = find(key);
    if (value == nullptr || !value->is_number())
      fail(key, value ? json_text(*value) : "missing", "a number");
    return value->get<double>();
  }
  double number(const char* key, double otherwise) const {
    return has(key) ? number(key) : otherwise;
  }
  bool flag(const char* key, bool otherwise) const {
    const json* value = find(key);
    if (value && !value->is_boolean()) fail(key, json_text(*value), "true or false");
    return value ? value->get<bool>() : otherwise;
  }
  std::vector<double> numbers(const char* key, int64_t count) const {
    const json* value = find(key);
    bool right = value && value->is_array() && std::ssize(*value) == count;
    for (const json& each : right ? *value : json::array()) right = right && each.is_number();
    if (!right)
      fail(key, value ? json_text(*value) : "missing", fmt::format("a list of {} numbers", count));
    return value->get<std::vector<double>>();
  }

 private:
  const json* find(const char* key) const {
    const auto found = rope_.find(key);
    return found == rope_.end() || found->is_null() ? nullptr : &*found;
  }
  [[noreturn]] void fail(const char* key, const std::string& found,
                         const std::string& expected) const {
    file_.fail(fmt::format("the rotary embedding's '{}' is {}, expected {}", key, found, expected));
  }

  const JsonSettings& file_;
  const char* where_;
  json rope_ = json::object();
};

/// The context that a stretched model was first trained with. Phi-3 keeps it beside the object and
/// transformers reads it there first.
double first_context(const JsonSettings& file, const RopeSettings& rope,
                     const ModelConfig& config) {
  constexpr const char* kKey = "original_max_position_embeddings";
  const double tokens =
      file.find(kKey) ? file.number(kKey) : rope.number(kKey, static_cast<double>(config.context));
  if (!(tokens > 1 && tokens <= static_cast<double>(kMaxSize)))
    file.fail(fmt::format("'{}' is {}, expected 2 to {}", kKey, tokens, kMaxSize));
  return tokens;
}

void read_yarn(const JsonSettings& file, const RopeSettings& rope, ModelConfig& config) {
  YarnScaling yarn;
  yarn.first_context = first_context(file, rope, config);
  yarn.factor = rope.number("factor", static_cast<double>(config.context) / yarn.first_context);
  yarn.beta_fast = rope.number("beta_fast", yarn.beta_fast);
  yarn.beta_slow = rope.number("beta_slow", yarn.beta_slow);
  yarn.truncate = rope.flag("truncate", true);
  config.rope_factors = yarn_factors(yarn, config.rotated(), config.rope_base);
  const bool weighted = rope.number("mscale", 0) != 0 && rope.number("mscale_all_dim", 0) != 0;
  const double usual = weighted ? yarn_attention(yarn.factor, rope.number("mscale")) /
                                      yarn_attention(yarn.factor, rope.number("mscale_all_dim"))
                                : yarn_attention(yarn.factor);
  config.rope_attention = rope.number("attention_factor", usual);
  config.context = stretched_context(config.context, yarn.factor * yarn.first_context);
}

/// Texts within the first context only: beyond it transformers rotates all keys by other factors,
/// also those that a cache already holds.
void read_longrope(const JsonSettings& file, const RopeSettings& rope, ModelConfig& config) {
  const double first = first_context(file, rope, config);
  const double factor = rope.number("factor", static_cast<double>(config.context) / first);
  config.rope_factors = rope.numbers("short_factor", config.rotated() / 2);
  config.rope_attention = rope.number("attention_factor", longrope_attention(factor, first));
  config.context = std::min(config.context, static_cast<int64_t>(first));
}

/// How much of each head is rotated.
void read_rotary_dim(const JsonSettings& file, const RopeSettings& rope,
                     const Architecture& architecture, ModelConfig& config) {
  constexpr const char* kKey = "partial_rotary_factor";
  const double part = rope.has(kKey) || !file.find(kKey) ? rope.number(kKey, 1) : file.number(kKey);
  if (part == 1) return;
  if (!architecture.partial_rotary)
    file.fail(fmt::format("'{}' is {}, expected 1: heads of a {} model turn whole", kKey, part,
                          architecture.name));
  if (!(part > 0 && part < 1)) file.fail(fmt::format("'{}' is {}, expected 0 to 1", kKey, part));
  config.rotary_dim = static_cast<int64_t>(static_cast<double>(config.head_size) * part);
  check_rotary_dim(config, [&](const std::string& text) { file.fail(text); });
}

}  // namespace

void read_hf_rope(const JsonSettings& file, const Architecture& architecture, ModelConfig& config) {
  const RopeSettings rope(file);
  read_rotary_dim(file, rope, architecture, config);
  const std::string type = rope.type();
  if (type == "linear")
    config.rope_factors.assign(static_cast<size_t>(config.rotated() / 2), rope.number("factor"));
  else if (type == "llama3")
    config.rope_factors =
        llama3_factors({.factor = rope.number("factor"),
                        .low_freq_factor = rope.number("low_freq_factor"),
                        .high_freq_factor = rope.number("high_freq_factor"),
                        .first_context = rope.number("original_max_position_embeddings")},
                       config.rotated(), config.rope_base);
  else if (type == "longrope" || type == "su" || (type == "yarn" && architecture.name == "phi3"))
    read_longrope(file, rope, config);  // Phi-3's older names for it
  else if (type == "yarn")
    read_yarn(file, rope, config);
  else if (type == "dynamic")
    // Within the context nothing is stretched. Beyond it the base would grow with the text and turn
    // all keys anew, also those that a cache already holds: so the context is not extended.
    rope.number("factor");
  else if (type != "default")
    file.fail(
        fmt::format("'{}' asks for '{}', a stretched rotary embedding that medusa does not run, "
                    "expected llama3, linear, dynamic, yarn, longrope or none",
                    rope.where(), type));
}

double read_hf_rope_base(const JsonSettings& file, const Architecture& architecture) {
  const RopeSettings rope(file);
  if (rope.has("rope_theta")) return rope.number("rope_theta");
  return file.find("rope_theta") ? file.number("rope_theta") : architecture.rope_base;
}

}  // namespace medusa
