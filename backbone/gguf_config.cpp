// A model's settings from the metadata of a GGUF file.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backbone/model_config.h"
#include "backbone/model_config_check.h"
#include "base/error.h"
#include "base/gguf_file.h"

namespace medusa {
namespace {

template <typename Fail>
void read_architecture(const GgufFile& file, ModelConfig& config, const Fail& fail) {
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
}

/// The file says either one factor for all frequencies, or has a tensor of them.
template <typename Fail>
std::vector<double> read_rope_factors(const GgufFile& file, const ModelConfig& config,
                                      const Fail& fail) {
  const std::string prefix = config.architecture + ".rope.";
  const auto type = file.find<std::string>(prefix + "scaling.type").value_or("none");
  if (type != "none" && type != "linear")
    fail(
        fmt::format("a stretched rotary embedding (scaling '{}') that medusa does not run, "
                    "expected linear, a tensor '{}' or none",
                    type, kGgufRopeFactors));
  const auto half = static_cast<size_t>(config.head_size / 2);
  if (const GgufTensor* tensor = file.find_tensor(kGgufRopeFactors)) {
    if (tensor->type != GgmlType::F32 || tensor->dims != std::vector<int64_t>{config.head_size / 2})
      fail(fmt::format("tensor '{}' is not {} numbers of type F32, expected a factor for each pair",
                       kGgufRopeFactors, half));
    std::vector<float> factors(half);
    std::memcpy(factors.data(), file.data(*tensor).data(), half * sizeof(float));
    return {factors.begin(), factors.end()};
  }
  const double factor = file.find<double>(prefix + "scaling.factor")
                            .value_or(file.find<double>(prefix + "scale_linear").value_or(1.0));
  return factor == 1.0 ? std::vector<double>{} : std::vector<double>(half, factor);
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
  read_architecture(file, config, fail);
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
  const auto turned = file.find<int64_t>(key("rope.dimension_count")).value_or(config.head_size);
  if (turned != config.head_size)
    fail(fmt::format("'{}' is {}, expected the head size {}", key("rope.dimension_count"), turned,
                     config.head_size));
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
  config.rope_factors = read_rope_factors(file, config, fail);
  check_factors(config, fail);
  return config;
}

}  // namespace medusa
