#include "heads/prefix_model.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "heads/medusa_heads.h"

namespace medusa {
namespace {

constexpr int64_t kFirstRows = 128;  // of a text's cache, which grows
constexpr int64_t kPassRows = 128;   // at most, as in the backbone's prefill

/// The layer as a model. It has no LM head: nobody asks it for logits.
Weights model_of(const PrefixLayer& prefix, const Weights& backbone) {
  const at::ScalarType dtype = backbone.embedding.scalar_type();
  LayerWeights masters = prefix.layer;
  masters.output = scaled_matrix(prefix, masters.output);
  masters.down = scaled_matrix(prefix, masters.down);
  Weights out;
  out.config = prefix.config;
  out.embedding = backbone.embedding;
  out.final_norm = backbone.final_norm;
  out.kind = backbone.embedding.is_cpu() ? backbone.kind : QuantKind::None;
  LayerWeights& layer = out.layers.emplace_back();
  layer.attention_norm = masters.attention_norm.to(at::kFloat);
  layer.mlp_norm = masters.mlp_norm.to(at::kFloat);
  if (out.kind != QuantKind::None) {
    layer.blocks = {quantize_matrix(masters.qkv), quantize_matrix(masters.output),
                    quantize_matrix(masters.gate_up), quantize_matrix(masters.down)};
    return out;
  }
  const auto copy = [dtype](const at::Tensor& matrix) { return matrix.to(dtype).contiguous(); };
  layer.qkv = copy(masters.qkv);
  layer.output = copy(masters.output);
  layer.gate_up = copy(masters.gate_up);
  layer.down = copy(masters.down);
  return out;
}

}  // namespace

PrefixModel::PrefixModel(const PrefixLayer& prefix, const Weights& backbone,
                         const ExecutionContext& execution)
    : llama_(model_of(prefix, backbone), execution),
      ends_{prefix.config, {}, {}, prefix.scale, prefix.final_norm},
      token_(prefix.token.to(backbone.embedding.scalar_type()).contiguous(), execution),
      gain_(embedding_gain(backbone)) {}

/// @returns [n, H] float32: x of prefix_layer.h.
at::Tensor PrefixModel::residual(const at::Tensor& hidden, std::span<const TokenId> roots) const {
  const auto count = static_cast<int64_t>(roots.size());
  const at::Tensor ids = at::tensor(at::ArrayRef<TokenId>(roots.data(), roots.size()), at::kInt)
                             .to(llama_.device())
                             .view({count, 1});
  const at::Tensor embedded = token_embeddings(llama_.weights(), gain_, ids).squeeze(1);  // [n, H]
  return hidden.to(llama_.dtype()).to(llama_.device(), at::kFloat) + token_(embedded);
}

PrefixText::PrefixText(PrefixModel& model)
    : model_(model),
      cache_([&model](int64_t rows) { return model.llama_.make_cache(1, rows); }, kFirstRows) {}

at::Tensor PrefixText::extend(const at::Tensor& hidden, std::span<const TokenId> roots) {
  const c10::InferenceMode no_grad;
  const auto count = static_cast<int64_t>(roots.size());
  MEDUSA_ASSERT(count > 0 && hidden.size(0) == count, hidden.size(0), count);
  cache_.reserve(length() + count);
  std::vector<at::Tensor> parts;
  for (int64_t begin = 0; begin < count; begin += kPassRows) {
    const int64_t n = std::min(kPassRows, count - begin);
    const auto part = roots.subspan(static_cast<size_t>(begin), static_cast<size_t>(n));
    const Segment segment{cache_.slot(), part, {}};
    const at::Tensor x = model_.residual(hidden.narrow(0, begin, n), part);
    const at::Tensor sum = model_.llama_.run_layers({&segment, 1}, x, cache_.cache());
    parts.push_back(normed_sum(model_.ends_, sum).to(model_.llama_.dtype()));
    cache_.commit(n);
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

at::Tensor PrefixText::peek(const at::Tensor& hidden, std::span<const TokenId> roots) {
  const int64_t before = length();
  at::Tensor states = extend(hidden, roots);
  cache_.rewind(before);
  return states;
}

}  // namespace medusa
