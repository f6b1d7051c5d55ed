#include "heads/prefix_layer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "heads/head_init.h"

namespace medusa {
namespace {

/// Whether the tensor begins at zero, so that the whole layer begins as no change.
bool begins_at_zero(const PrefixLayer& prefix, const at::Tensor* tensor) {
  return tensor == &prefix.token || tensor == &prefix.layer.output || tensor == &prefix.layer.down;
}

/// What a layer adds is half as large as the state that it is added to: in SmolLM2 the last layer's
/// sum is .57 of its residual stream, and .38 where it runs a second time.
constexpr double kShareOfState = 0.5;

double root_mean_square(const at::Tensor& x) {
  return x.to(at::kDouble).square().mean().sqrt().item<double>();
}

/// How large a layer's feed-forward part is, for a residual stream of size 1 in any direction.
double size_of_mlp(const LayerWeights& layer, const ModelConfig& config) {
  constexpr int64_t kDirections = 256;
  const at::Tensor x =
      small_random(kDirections, config.hidden_size, Random(1), 0).to(layer.mlp_norm.device());
  const at::Tensor normed = x / x.square().mean(1, true).sqrt() * layer.mlp_norm.to(at::kFloat);
  const auto sides = at::mm(normed, layer.gate_up.to(at::kFloat).t()).chunk(2, 1);
  return root_mean_square(at::mm(at::silu(sides[0]) * sides[1], layer.down.to(at::kFloat).t()));
}

void expect_plain_layer(const ModelConfig& backbone) {
  const int64_t last = backbone.num_layers - 1;
  const bool has_rope = backbone.no_rope.empty() || !backbone.no_rope[static_cast<size_t>(last)];
  if (!backbone.qkv_bias && !backbone.qk_norm && has_rope) return;
  throw UserError(
      fmt::format("train.heads.start is last_layer, and the backbone's last layer has {}, expected "
                  "one without, "
                  "as a prefix layer has none; set start to random",
                  backbone.qkv_bias  ? "biases"
                  : backbone.qk_norm ? "norms of queries and keys"
                                     : "no rotary embedding"));
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

void begin_as_last_layer(PrefixLayer& prefix, const ModelConfig& backbone, const LayerWeights& last,
                         const at::Tensor& final_norm) {
  expect_plain_layer(backbone);
  const at::Device device = prefix.token.device();
  const auto copied = [device](const at::Tensor& x) {
    return x.to(device, at::kFloat, false, true);
  };
  const at::Tensor w = copied(final_norm);
  // The norms read h as the backbone's read r: h / RMS(h) = (w / RMS(w)) r / RMS(r), about. A
  // channel that the final norm all but removes cannot be brought back.
  constexpr double kFaintest = 1.0 / 8;
  const double size = root_mean_square(w);
  const at::Tensor seen =
      at::where(w.abs() < kFaintest * size, kFaintest * size * at::sgn(w + 1e-30), w);
  const at::Tensor undone = size / seen;
  prefix.layer.attention_norm = copied(last.attention_norm) * undone;
  prefix.layer.mlp_norm = copied(last.mlp_norm) * undone;
  prefix.layer.qkv = copied(last.qkv);
  prefix.layer.gate_up = copied(last.gate_up);
  prefix.layer.output = copied(last.output);
  prefix.layer.down = copied(last.down);
  // What is added to r / RMS(r) becomes what is added to h.
  prefix.final_norm = w;
  prefix.scale = w * (kShareOfState / size_of_mlp(last, backbone));
}

at::Tensor normed_sum(const PrefixLayer& prefix, const at::Tensor& sum) {
  if (!prefix.scale.defined()) return sum;
  const at::Tensor stream = sum / prefix.final_norm;
  return sum / (stream.square().mean(-1, true) + prefix.config.norm_epsilon).sqrt();
}

at::Tensor scaled_matrix(const PrefixLayer& prefix, const at::Tensor& matrix) {
  return prefix.scale.defined() ? matrix * prefix.scale.unsqueeze(1) : matrix;
}

std::vector<std::pair<std::string, at::Tensor>> named_parameters(const PrefixLayer& prefix) {
  PrefixLayer same = prefix;  // shares the tensors
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (const PrefixPart& part : prefix_parts(same)) named.emplace_back(part.name, *part.tensor);
  return named;
}

}  // namespace medusa
