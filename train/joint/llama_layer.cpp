#include "train/joint/llama_layer.h"

#include <ATen/ATen.h>

#include <optional>

#include "backbone/rms_norm.h"
#include "base/check.h"

namespace medusa {
namespace {

/// Causal attention within one text.
/// @param query, key, value  [1, heads, n, D]
/// @param window             last tokens that each sees; 0: all.
at::Tensor mix(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               int64_t window) {
  const int64_t n = query.size(2);
  std::optional<at::Tensor> mask;
  if (window > 0 && window < n)
    mask = at::ones({n, n}, query.options().dtype(at::kBool)).tril().triu(1 - window);
  return at::scaled_dot_product_attention(query, key, value, mask, 0.0,
                                          /*is_causal=*/!mask.has_value(), std::nullopt,
                                          /*enable_gqa=*/true);
}

/// @param x  [n, H] float32, normalised.
/// @returns  [n, A D] in dtype: every head's mixture of values.
at::Tensor attend(const ModelConfig& c, int64_t index, const RopeTable& rope,
                  const LayerWeights& layer, const LayerProduct& product, const PackedTexts& texts,
                  at::ScalarType dtype, const at::Tensor& x) {
  const int64_t n = x.size(0), query_size = c.num_heads * c.head_size,
                kv_size = c.num_kv_heads * c.head_size;
  at::Tensor qkv = product(x, LayerMatrix::Qkv);
  if (layer.qkv_bias.defined()) qkv = qkv + layer.qkv_bias.to(dtype);
  const auto parts = qkv.to(at::kFloat).split_with_sizes({query_size, kv_size, kv_size}, -1);
  const auto heads_first = [&](const at::Tensor& rows) {  // [1, heads, n, D]
    return rows.to(dtype).transpose(0, 1).unsqueeze(0);
  };
  const auto place = [&](const at::Tensor& part, int64_t heads, const at::Tensor& norm) {
    at::Tensor y = part.reshape({n, heads, -1});
    if (norm.defined()) y = rms_norm(y, norm, c.norm_epsilon);
    return heads_first(c.turns(index) ? apply_rope(y, texts.positions, rope) : y);
  };
  const at::Tensor query = place(parts[0], c.num_heads, layer.query_norm);
  const at::Tensor key = place(parts[1], c.num_kv_heads, layer.key_norm);
  const at::Tensor value = heads_first(parts[2].reshape({n, c.num_kv_heads, -1}));
  std::vector<at::Tensor> mixed;
  int64_t begin = 0;
  for (const int64_t length : texts.lengths) {
    const auto part = [&](const at::Tensor& all) { return all.narrow(2, begin, length); };
    mixed.push_back(mix(part(query), part(key), part(value), c.window(index)));
    begin += length;
  }
  return at::cat(mixed, 2).squeeze(0).transpose(0, 1).reshape({n, query_size});
}

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

at::Tensor& matrix_of(LayerWeights& layer, LayerMatrix matrix) { return layer.*part_of(matrix); }

const at::Tensor& matrix_of(const LayerWeights& layer, LayerMatrix matrix) {
  return layer.*part_of(matrix);
}

at::Tensor run_layer(const ModelConfig& config, int64_t index, const RopeTable& rope,
                     const LayerWeights& layer, const LayerProduct& product,
                     const PackedTexts& texts, at::ScalarType dtype, const at::Tensor& x) {
  const at::Tensor mixed = attend(config, index, rope, layer, product, texts, dtype,
                                  rms_norm(x, layer.attention_norm, config.norm_epsilon));
  const at::Tensor y = x + product(mixed, LayerMatrix::Output).to(at::kFloat);
  const at::Tensor gate_up =
      product(rms_norm(y, layer.mlp_norm, config.norm_epsilon), LayerMatrix::GateUp);
  const auto halves = gate_up.chunk(2, -1);  // [n, I] each
  return y + product(at::silu(halves[0]) * halves[1], LayerMatrix::Down).to(at::kFloat);
}

}  // namespace medusa
