// A model's settings from the metadata of a GGUF file.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backbone/files/model_config_check.h"
#include "backbone/model_config.h"
#include "backbone/rope_scaling.h"
#include "base/error.h"
#include "base/formats/gguf_file.h"

namespace medusa {
namespace {

constexpr const char* kWindowedLlama = "mistral";

template <typename Fail>
const Architecture& read_architecture(const GgufFile& file, ModelConfig& config, const Fail& fail) {
  const auto name = file.required<std::string>("general.architecture");
  const Architecture* architecture = find_architecture(name);
  if (architecture == nullptr || !architecture->in_gguf)
    fail(
        fmt::format("'general.architecture' is '{}', expected {}", name, architecture_names(true)));
  const std::string experts = name + ".expert_count";
  if (const auto count = file.find<int64_t>(experts); count.value_or(0) > 0)
    fail(fmt::format("'{}' is {}, a mixture of experts that medusa does not run, expected none",
                     experts, *count));
  config.architecture = name;
  config.qkv_bias = architecture->qkv_bias;
  config.qk_norm = architecture->qk_norm;
  return *architecture;
}

/// Factors that the file holds as a tensor; empty if it has none of this name.
template <typename Fail>
std::vector<double> read_factors(const GgufFile& file, const char* name, const ModelConfig& config,
                                 const Fail& fail) {
  const GgufTensor* tensor = file.find_tensor(name);
  if (tensor == nullptr) return {};
  const auto half = static_cast<size_t>(config.rotated() / 2);
  if (tensor->type != GgmlType::F32 || tensor->dims != std::vector<int64_t>{config.rotated() / 2})
    fail(fmt::format("tensor '{}' is not {} numbers of type F32, expected a factor for each pair",
                     name, half));
  std::vector<float> factors(half);
  std::memcpy(factors.data(), file.data(*tensor).data(), half * sizeof(float));
  return {factors.begin(), factors.end()};
}

/// What stretches the rotary embedding: tensors of factors, or numbers of one of three rules.
template <typename Fail>
void read_rope(const GgufFile& file, ModelConfig& config, const Fail& fail) {
  const std::string prefix = config.architecture + ".rope.scaling.";
  const auto number = [&](const char* key, double otherwise) {
    return file.find<double>(prefix + key).value_or(otherwise);
  };
  const auto type = file.find<std::string>(prefix + "type").value_or("none");
  const auto half = static_cast<size_t>(config.rotated() / 2);
  const auto context = static_cast<double>(config.context);
  const double first_context = number("original_context_length", context);
  if (!(first_context > 1 && first_context <= static_cast<double>(kMaxSize)))
    fail(fmt::format("'{}original_context_length' is {}, expected 2 to {}", prefix, first_context,
                     kMaxSize));
  const double linear = file.find<double>(config.architecture + ".rope.scale_linear").value_or(1.0);
  const bool says_none = file.find<std::string>(prefix + "type").has_value() && type == "none";
  const double factor = says_none ? 1.0 : number("factor", linear);
  if (auto factors = read_factors(file, kGgufShortFactors, config, fail); !factors.empty()) {
    // The long factors would rotate all keys anew, also those that a cache already holds.
    config.rope_factors = std::move(factors);
    config.rope_attention =
        number("attn_factor", longrope_attention(context / first_context, first_context));
    config.context = std::min(config.context, static_cast<int64_t>(first_context));
  } else if (type == "yarn") {
    config.rope_factors = yarn_factors({.factor = factor,
                                        .first_context = first_context,
                                        .beta_fast = number("yarn_beta_fast", 32),
                                        .beta_slow = number("yarn_beta_slow", 1)},
                                       config.rotated(), config.rope_base);
    config.rope_attention =
        number("yarn_attn_factor", yarn_attention(factor)) * number("attn_factor", 1.0);
    config.context = stretched_context(config.context, factor * first_context);
  } else if (type == "none" || type == "linear") {
    config.rope_factors = read_factors(file, kGgufRopeFactors, config, fail);
    if (config.rope_factors.empty() && factor != 1.0) config.rope_factors.assign(half, factor);
  } else {
    fail(
        fmt::format("a stretched rotary embedding (scaling '{}') that medusa does not run, "
                    "expected linear, yarn, a tensor '{}' or '{}', or none",
                    type, kGgufRopeFactors, kGgufShortFactors));
  }
}

/// Which layers see only the last tokens: one word for each, or a number n where every n-th layer
/// sees all, or nothing.
/// @returns  [L], or empty for nothing.
template <typename Fail>
std::vector<bool> read_window_pattern(const GgufFile& file, const ModelConfig& config,
                                      const Fail& fail) {
  const std::string key = config.architecture + ".attention.sliding_window_pattern";
  const auto entry = std::find_if(file.entries().begin(), file.entries().end(),
                                  [&](const GgufEntry& each) { return each.key == key; });
  if (entry == file.entries().end()) return {};
  const auto count = static_cast<size_t>(config.num_layers);
  if (entry->is_array) {
    auto layers = *file.find<std::vector<bool>>(key);
    if (layers.size() != count)
      fail(fmt::format("'{}' is a list of {}, expected true or false for each of {} layers", key,
                       layers.size(), count));
    return layers;
  }
  const auto every = *file.find<int64_t>(key);
  if (every < 0) fail(fmt::format("'{}' is {}, expected 0 or more", key, every));
  std::vector<bool> layers(count, true);
  for (size_t layer = 0; every > 0 && layer < count; ++layer)
    layers[layer] = static_cast<int64_t>(layer) % every < every - 1;
  return layers;
}

/// Layers that see only the last tokens. Where no key says which, all do, unless the architecture
/// has other layers as well: then texts end where the window does, within which all are the same.
/// A Llama with a window is what GGUF files call a Mistral.
template <typename Fail>
void read_windows(const GgufFile& file, const Architecture& architecture, ModelConfig& config,
                  const Fail& fail) {
  const auto window =
      file.find<int64_t>(config.architecture + ".attention.sliding_window").value_or(0);
  if (window < 1 || window >= config.context) return;  // 0: none
  std::vector<bool> layers = read_window_pattern(file, config, fail);
  if (layers.empty() && architecture.windows == WindowRule::Switched) {
    config.context = window;
    return;
  }
  layers.resize(static_cast<size_t>(config.num_layers), true);
  for (const bool slides : layers) config.windows.push_back(slides ? window : 0);
  if (architecture.windows == WindowRule::Never) config.architecture = kWindowedLlama;
}

/// Rows of the embedding; the length of the token list in a file without tensors.
int64_t vocab_size(const GgufFile& file, const std::string& key) {
  if (const GgufTensor* embedding = file.find_tensor("token_embd.weight");
      embedding && embedding->dims.size() == 2)
    return embedding->dims[1];
  for (const GgufEntry& entry : file.entries())
    if (entry.key == "tokenizer.ggml.tokens" && entry.is_array) return entry.count;
  return file.required<int64_t>(key);
}

}  // namespace

ModelConfig read_gguf_config(const GgufFile& file) {
  const auto fail = [&](const std::string& text) {
    throw UserError(fmt::format("{}: {}; use another model", file.path().string(), text));
  };
  ModelConfig config;
  const Architecture& architecture = read_architecture(file, config, fail);
  const auto key = [&](const char* name) {
    return fmt::format("{}.{}", config.architecture, name);
  };
  config.num_layers = file.required<int64_t>(key("block_count"));
  config.hidden_size = file.required<int64_t>(key("embedding_length"));
  config.num_heads = file.required<int64_t>(key("attention.head_count"));
  config.num_kv_heads =
      file.find<int64_t>(key("attention.head_count_kv")).value_or(config.num_heads);
  const auto head_size = file.find<int64_t>(key("attention.key_length"));
  config.head_size = head_size ? *head_size : even_share(config, fail);
  const auto rotated = file.find<int64_t>(key("rope.dimension_count")).value_or(config.head_size);
  if (rotated != config.head_size) {
    if (!architecture.partial_rotary)
      fail(fmt::format("'{}' is {}, expected the head size {}", key("rope.dimension_count"),
                       rotated, config.head_size));
    config.rotary_dim = rotated;
    check_rotary_dim(config, fail);
  }
  const auto value_size =
      file.find<int64_t>(key("attention.value_length")).value_or(config.head_size);
  if (value_size != config.head_size)
    fail(fmt::format("'{}' is {}, expected the head size {}", key("attention.value_length"),
                     value_size, config.head_size));
  config.mlp_size = file.required<int64_t>(key("feed_forward_length"));
  config.vocab_size = vocab_size(file, key("vocab_size"));
  config.context = file.required<int64_t>(key("context_length"));
  config.norm_epsilon = file.required<double>(key("attention.layer_norm_rms_epsilon"));
  config.rope_base = file.find<double>(key("rope.freq_base")).value_or(10000.0);
  config.tied_output = file.find_tensor("output.weight") == nullptr;
  for (const char* end : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
    if (const auto id = file.find<int64_t>(end)) {
      if (*id < 0 || *id >= config.vocab_size)
        fail(fmt::format("'{}' is {}, expected an id below the vocabulary size {}", end, *id,
                         config.vocab_size));
      if (const auto token = static_cast<TokenId>(*id);
          std::find(config.eos.begin(), config.eos.end(), token) == config.eos.end())
        config.eos.push_back(token);
    }
  check_values(config, fail);
  read_rope(file, config, fail);
  check_rope(config, fail);
  if (architecture.no_rope_interval > 0)  // no key says so
    config.no_rope = no_rope_layers(config.num_layers, architecture.no_rope_interval);
  read_windows(file, architecture, config, fail);
  return config;
}

}  // namespace medusa
