#include "backbone/reference_layer.h"

#include <ATen/ATen.h>

namespace medusa {
namespace {

at::Tensor LayerWeights::*part_of(LayerMatrix matrix) {
  switch (matrix) {
    case LayerMatrix::Qkv:
      return &LayerWeights::qkv;
    case LayerMatrix::Output:
      return &LayerWeights::output;
    case LayerMatrix::GateUp:
      return &LayerWeights::gate_up;
    case LayerMatrix::Down:
      break;
  }
  return &LayerWeights::down;
}

void report(StageTimer* timer, ForwardStage part) {
  if (timer != nullptr) timer->record(part);
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  const at::Tensor mean_square = (x * x).mean(-1, /*keepdim=*/true);  // [N, 1]
  return x * (mean_square + epsilon).rsqrt() * weight;
}

at::Tensor& matrix_of(LayerWeights& layer, LayerMatrix matrix) { return layer.*part_of(matrix); }

const at::Tensor& matrix_of(const LayerWeights& layer, LayerMatrix matrix) {
  return layer.*part_of(matrix);
}

at::Tensor run_layer(const LayerPass& pass, const LayerWeights& layer,
                     const LayerAttention& attention, const at::Tensor& x) {
  const at::Tensor input = rms_norm(x, layer.attention_norm, pass.config.norm_epsilon);
  report(pass.timer, ForwardStage::AttentionNorm);
  return run_normed_layer(pass, layer, attention, input, x);
}

at::Tensor run_normed_layer(const LayerPass& pass, const LayerWeights& layer,
                            const LayerAttention& attention, const at::Tensor& input,
                            const at::Tensor& x) {
  const ModelConfig& c = pass.config;
  const int64_t n = x.size(0), query_size = c.num_heads * c.head_size,
                kv_size = c.num_kv_heads * c.head_size;
  at::Tensor qkv = pass.matmul(input, LayerMatrix::Qkv);
  if (layer.qkv_bias.defined()) qkv = qkv + layer.qkv_bias.to(qkv.scalar_type());
  report(pass.timer, ForwardStage::Qkv);
  const auto parts = qkv.to(at::kFloat).split_with_sizes({query_size, kv_size, kv_size}, -1);
  const auto place = [&](const at::Tensor& part, int64_t heads, const at::Tensor& norm) {
    at::Tensor y = part.reshape({n, heads, -1});
    if (norm.defined()) y = rms_norm(y, norm, c.norm_epsilon);
    return c.uses_rope(pass.index) ? apply_rope(y, pass.positions, pass.rope) : y;
  };
  const at::Tensor query = place(parts[0], c.num_heads, layer.query_norm);
  const at::Tensor key = place(parts[1], c.num_kv_heads, layer.key_norm);
  report(pass.timer, ForwardStage::Rope);
  const at::Tensor attention_out = attention(query, key, parts[2].reshape({n, c.num_kv_heads, -1}));
  report(pass.timer, ForwardStage::Attention);
  return run_layer_tail(c, pass.matmul, layer, attention_out, x, pass.timer);
}

at::Tensor run_layer_tail(const ModelConfig& config, const LayerMatmul& matmul,
                          const LayerWeights& layer, const at::Tensor& attention_out,
                          const at::Tensor& x, StageTimer* timer) {
  const at::Tensor y = x + matmul(attention_out, LayerMatrix::Output).to(at::kFloat);
  report(timer, ForwardStage::Output);
  const at::Tensor input = rms_norm(y, layer.mlp_norm, config.norm_epsilon);
  report(timer, ForwardStage::MlpNorm);
  const auto halves = matmul(input, LayerMatrix::GateUp).chunk(2, -1);  // [n, I] each
  report(timer, ForwardStage::GateUp);
  const at::Tensor activated = at::silu(halves[0]) * halves[1];
  report(timer, ForwardStage::Activation);
  at::Tensor out = y + matmul(activated, LayerMatrix::Down).to(at::kFloat);
  report(timer, ForwardStage::Down);
  return out;
}

}  // namespace medusa
