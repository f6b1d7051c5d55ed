#include "train/joint/llama_layer.h"

#include <ATen/ATen.h>

#include <optional>

#include "base/check.h"

namespace medusa {
namespace {

/// Causal attention within one text.
/// @param query, key, value  [1, heads, n, D]
/// @param window             last tokens that each sees; 0: all.
at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  int64_t window) {
  const int64_t n = query.size(2);
  std::optional<at::Tensor> mask;
  if (window > 0 && window < n)
    mask = at::ones({n, n}, query.options().dtype(at::kBool)).tril().triu(1 - window);
  return at::scaled_dot_product_attention(query, key, value, mask, 0.0,
                                          /*is_causal=*/!mask.has_value(), std::nullopt,
                                          /*enable_gqa=*/true);
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

at::Tensor reference_matmul(const at::Tensor& x, const at::Tensor& matrix, at::ScalarType dtype) {
  return at::linear(x.to(dtype), matrix.to(dtype));
}

at::Tensor run_packed_layer(const ModelConfig& config, int64_t index, const RopeTable& rope,
                            const LayerWeights& layer, const LayerMatmul& matmul,
                            const PackedTexts& texts, at::ScalarType dtype, const at::Tensor& x) {
  const auto attention = [&](const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value) {
    const auto heads_first = [dtype](const at::Tensor& rows) {  // [1, heads, n, D]
      return rows.to(dtype).transpose(0, 1).unsqueeze(0);
    };
    const at::Tensor queries = heads_first(query), keys = heads_first(key),
                     values = heads_first(value);
    std::vector<at::Tensor> attention_out;
    int64_t begin = 0;
    for (const int64_t length : texts.lengths) {
      const auto part = [&](const at::Tensor& all) { return all.narrow(2, begin, length); };
      attention_out.push_back(
          attend(part(queries), part(keys), part(values), config.window(index)));
      begin += length;
    }
    return at::cat(attention_out, 2)
        .squeeze(0)
        .transpose(0, 1)
        .reshape({x.size(0), config.num_heads * config.head_size});
  };
  return run_layer({config, index, rope, texts.positions, matmul}, layer, attention, x);
}

}  // namespace medusa
