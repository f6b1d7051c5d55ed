#include "train/llama_layer.h"

#include <ATen/ATen.h>

#include "backbone/rms_norm.h"
#include "base/check.h"

namespace medusa {
namespace {

/// @param x  [n, H] float32, normalised.
/// @returns  [n, A D] in dtype: every head's mixture of values.
at::Tensor attend(const ModelConfig& c, const RopeTable& rope, const LayerWeights& layer,
                  const LayerProduct& product, const PackedTexts& texts, at::ScalarType dtype,
                  const at::Tensor& x) {
  const int64_t n = x.size(0), query_size = c.num_heads * c.head_size,
                kv_size = c.num_kv_heads * c.head_size;
  at::Tensor qkv = product(x, LayerMatrix::Qkv);
  if (layer.qkv_bias.defined()) qkv = qkv + layer.qkv_bias.to(dtype);
  const auto parts = qkv.to(at::kFloat).split_with_sizes({query_size, kv_size, kv_size}, -1);
  const auto heads_first = [&](const at::Tensor& rows) {  // [1, heads, n, D]
    return rows.to(dtype).transpose(0, 1).unsqueeze(0);
  };
  const at::Tensor query =
      heads_first(apply_rope(parts[0].reshape({n, c.num_heads, -1}), texts.positions, rope));
  const at::Tensor key =
      heads_first(apply_rope(parts[1].reshape({n, c.num_kv_heads, -1}), texts.positions, rope));
  const at::Tensor value = heads_first(parts[2].reshape({n, c.num_kv_heads, -1}));
  std::vector<at::Tensor> mixed;
  int64_t begin = 0;
  for (const int64_t length : texts.lengths) {
    const auto part = [&](const at::Tensor& all) { return all.narrow(2, begin, length); };
    mixed.push_back(at::scaled_dot_product_attention(part(query), part(key), part(value), {}, 0.0,
                                                     /*is_causal=*/true, std::nullopt,
                                                     /*enable_gqa=*/true));
    begin += length;
  }
  return at::cat(mixed, 2).squeeze(0).transpose(0, 1).reshape({n, query_size});
}

}  // namespace

PackedTexts pack_texts(std::span<const TokenId> tokens, std::span<const int64_t> lengths,
                       int64_t context, at::Device device) {
  std::vector<int64_t> ids(tokens.begin(), tokens.end()), positions;
  for (const int64_t length : lengths) {
    MEDUSA_ASSERT(length >= 1 && length <= context, length, context);
    for (int64_t i = 0; i < length; ++i) positions.push_back(i);
  }
  MEDUSA_ASSERT(positions.size() == ids.size(), positions.size(), ids.size());
  return {at::tensor(ids, at::kLong).to(device),
          at::tensor(positions, at::kLong).to(device),
          {lengths.begin(), lengths.end()}};
}

at::Tensor plain_product(const at::Tensor& x, const at::Tensor& matrix, at::ScalarType dtype) {
  return at::linear(x.to(dtype), matrix.to(dtype));
}

const at::Tensor& matrix_of(const LayerWeights& layer, LayerMatrix matrix) {
  switch (matrix) {
    case LayerMatrix::Qkv:
      return layer.qkv;
    case LayerMatrix::Output:
      return layer.output;
    case LayerMatrix::GateUp:
      return layer.gate_up;
    case LayerMatrix::Down:
      break;
  }
  return layer.down;
}

at::Tensor run_layer(const ModelConfig& config, const RopeTable& rope, const LayerWeights& layer,
                     const LayerProduct& product, const PackedTexts& texts, at::ScalarType dtype,
                     const at::Tensor& x) {
  const at::Tensor mixed = attend(config, rope, layer, product, texts, dtype,
                                  rms_norm(x, layer.attention_norm, config.norm_epsilon));
  const at::Tensor y = x + product(mixed, LayerMatrix::Output).to(at::kFloat);
  const at::Tensor gate_up =
      product(rms_norm(y, layer.mlp_norm, config.norm_epsilon), LayerMatrix::GateUp);
  const auto halves = gate_up.chunk(2, -1);  // [n, I] each
  return y + product(at::silu(halves[0]) * halves[1], LayerMatrix::Down).to(at::kFloat);
}

}  // namespace medusa
