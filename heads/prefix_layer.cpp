#include "heads/prefix_layer.h"

#include <ATen/ATen.h>

#include "heads/small_random.h"

namespace medusa {
namespace {

/// Whether the tensor begins at zero, so that the whole layer begins as no change.
bool begins_at_zero(const PrefixLayer& prefix, const at::Tensor* tensor) {
  return tensor == &prefix.token || tensor == &prefix.layer.output || tensor == &prefix.layer.down;
}

}  // namespace

std::vector<PrefixPart> prefix_parts(PrefixLayer& prefix) {
  const ModelConfig& c = prefix.config;
  LayerWeights& layer = prefix.layer;
  const int64_t h = c.hidden_size, query_size = c.num_heads * c.head_size,
                kv_size = c.num_kv_heads * c.head_size;
  return {{"token", &prefix.token, {h, h}},
          {"attention_norm", &layer.attention_norm, {h}},
          {"qkv", &layer.qkv, {query_size + 2 * kv_size, h}},
          {"output", &layer.output, {h, query_size}},
          {"mlp_norm", &layer.mlp_norm, {h}},
          {"gate_up", &layer.gate_up, {2 * c.mlp_size, h}},
          {"down", &layer.down, {h, c.mlp_size}}};
}

PrefixLayer empty_prefix_layer(const ModelConfig& backbone) {
  PrefixLayer prefix;
  prefix.config = backbone;
  prefix.config.num_layers = 1;
  prefix.config.no_rope.clear();
  prefix.config.windows.clear();
  prefix.config.qkv_bias = prefix.config.qk_norm = false;
  return prefix;
}

PrefixLayer make_prefix_layer(const ModelConfig& backbone, const Random& random,
                              at::Device device) {
  PrefixLayer prefix = empty_prefix_layer(backbone);
  int64_t block = 0;  // those of heads are numbered from 0 upwards
  for (const PrefixPart& part : prefix_parts(prefix)) {
    --block;
    at::Tensor& tensor = *part.tensor;
    if (part.sizes.size() == 1)
      tensor = at::ones(part.sizes, at::kFloat);
    else if (begins_at_zero(prefix, part.tensor))
      tensor = at::zeros(part.sizes, at::kFloat);
    else
      tensor = small_random(part.sizes[0], part.sizes[1], random, block);
    tensor = tensor.to(device);
  }
  return prefix;
}

std::vector<std::pair<std::string, at::Tensor>> named_parameters(const PrefixLayer& prefix) {
  PrefixLayer same = prefix;  // shares the tensors
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (const PrefixPart& part : prefix_parts(same)) named.emplace_back(part.name, *part.tensor);
  return named;
}

}  // namespace medusa
