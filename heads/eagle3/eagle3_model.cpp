#include "heads/eagle3/eagle3_model.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>

#include "backbone/attention.h"
#include "base/check.h"
#include "base/error.h"

namespace medusa {
namespace {

constexpr int64_t kFirstPositions = 128;  // of a text's cache, which grows
constexpr int64_t kRowsPerPass = 128;     // at most, as in the backbone's prefill

/// The layer's sizes, with a rotary table for the target's texts and the trees behind them.
ModelConfig layer_config(const Eagle3Weights& weights, const ModelConfig& target,
                         int64_t most_behind) {
  ModelConfig config = weights.config;
  config.context = target.context + most_behind;
  return config;
}

at::Tensor token_ids(std::span<const TokenId> tokens, at::Device device) {
  return at::tensor(at::ArrayRef<TokenId>(tokens.data(), tokens.size()), at::kInt).to(device);
}

}  // namespace

std::vector<int32_t> usual_feature_layers(int64_t num_layers) {
  if (num_layers < 7) return {};
  return {2, static_cast<int32_t>(num_layers / 2), static_cast<int32_t>(num_layers - 3)};
}

Eagle3Model::Eagle3Model(const Eagle3Weights& weights, const Weights& target,
                         const ExecutionContext& execution, int64_t most_behind)
    : config_(layer_config(weights, target.config, most_behind)),
      feature_layers_(weights.feature_layers),
      tokens_(weights.tokens),
      rope_(make_rope_table(config_, target.embedding.device())),
      most_behind_(most_behind) {
  const at::Device device = target.embedding.device();
  const at::ScalarType type = target.embedding.scalar_type();
  const auto linear = [&](const at::Tensor& matrix) {
    return Linear(matrix.to(device, type).contiguous(), execution);
  };
  const auto norm = [&](const at::Tensor& weight) { return weight.to(device, at::kFloat); };
  embedding_ = weights.embedding.defined() ? weights.embedding.to(device, type) : target.embedding;
  MEDUSA_ASSERT(embedding_.size(1) == config_.hidden_size, embedding_.size(1));
  token_norm_ = norm(weights.token_norm);
  state_norm_ = norm(weights.state_norm);
  final_norm_ = norm(weights.final_norm);
  norms_.mlp_norm = norm(weights.layer.mlp_norm);
  fuse_ = linear(weights.fuse);
  lm_head_ = linear(weights.lm_head);
  for (const LayerMatrix each :
       {LayerMatrix::Qkv, LayerMatrix::Output, LayerMatrix::GateUp, LayerMatrix::Down})
    linears_[static_cast<size_t>(each)] = linear(matrix_of(weights.layer, each));
}

KvCache Eagle3Model::make_cache(int64_t rows) const {
  return {config_, 1, rows, dtype(), device(), KvLayout::Rows, {.whole_slots = true}};
}

/// @param features  [n, F, H_t] float32. @returns  [n, H] float32.
at::Tensor Eagle3Model::fuse(const at::Tensor& features) const {
  return fuse_(features.flatten(1).to(dtype()));
}

/// Keys and values become tentative rows.
/// @param hidden  [n, H] float32: h of the segment's rows from `first` on.
/// @returns       [n, H] float32: y.
at::Tensor Eagle3Model::run(const Segment& segment, const at::Tensor& hidden,
                            KvCache& cache) const {
  const ForwardPlan plan = plan_forward({&segment, 1}, cache);
  MEDUSA_ASSERT(hidden.size(0) == plan.size(), hidden.size(0), plan.size());
  std::vector<int64_t> rows;
  for (const BatchToken& row : plan.rows) rows.push_back(row.position);
  const at::Tensor positions = at::tensor(rows, at::kLong).to(device());
  const auto tokens = segment.tokens.subspan(static_cast<size_t>(segment.first));
  const at::Tensor embedded =
      embedding_.index_select(0, token_ids(tokens, device())).to(at::kFloat);  // [n, H]
  const double epsilon = config_.norm_epsilon;
  const at::Tensor input = at::cat(
      {rms_norm(embedded, token_norm_, epsilon), rms_norm(hidden, state_norm_, epsilon)}, 1);
  AttentionMasks masks(plan, device());
  const LayerMatmul matmul = [this](const at::Tensor& x, LayerMatrix matrix) {
    return linears_[static_cast<size_t>(matrix)](x.to(dtype()));
  };
  const LayerAttention attention = [&](const at::Tensor& query, const at::Tensor& key,
                                       const at::Tensor& value) {
    write_cache(plan, 0, key, value, cache);
    const at::Tensor rounded = query.to(dtype()).to(at::kFloat);  // as precise as the keys
    return masked_attention(plan, 0, rounded, cache, masks);
  };
  return run_normed_layer({config_, 0, rope_, positions, matmul}, norms_, attention, input, hidden);
}

at::Tensor Eagle3Model::logits(const at::Tensor& states) const {
  const c10::InferenceMode no_grad;
  return lm_head_(rms_norm(states, final_norm_, config_.norm_epsilon).to(dtype()));
}

Eagle3Model::Drafts Eagle3Model::drafts(const at::Tensor& states, int64_t count) const {
  const at::Tensor rows = logits(states);
  BestRows best;
  if (rows.is_cpu()) {
    best.count = count;
    best.best.resize(static_cast<size_t>(rows.size(0) * count));
    for (int64_t i = 0; i < rows.size(0); ++i) {
      const auto size = static_cast<size_t>(rows.size(1));
      const std::span row(static_cast<const float*>(rows.const_data_ptr()) + i * rows.size(1),
                          size);
      best.log_sums.push_back(
          top_k_drafts(row, std::span(best.best).subspan(static_cast<size_t>(i * count),
                                                         static_cast<size_t>(count))));
    }
  } else {
    best = best_on_device(rows, count);
  }
  if (!std::all_of(best.log_sums.begin(), best.log_sums.end(),
                   [](float sum) { return std::isfinite(sum); }))
    throw UserError(
        "the EAGLE-3 draft: gives logits that are not finite, expected numbers; get its file "
        "again, as its weights may be damaged, or choose another drafter");
  Drafts out;
  out.count = count;
  for (int64_t i = 0; i < best.size(); ++i)
    for (const ScoredRow& each : best.row(i)) {
      out.tokens.push_back(tokens_[static_cast<size_t>(each.row)]);
      out.log_probs.push_back(static_cast<double>(each.logit) -
                              static_cast<double>(best.log_sums[static_cast<size_t>(i)]));
    }
  return out;
}

Eagle3Text::Eagle3Text(Eagle3Model& model)
    : model_(model),
      cache_([&model](int64_t rows) { return model.make_cache(rows); },
             kFirstPositions + model.most_behind_) {}

at::Tensor Eagle3Text::extend(const at::Tensor& features, std::span<const TokenId> tokens) {
  const c10::InferenceMode no_grad;
  const auto count = std::ssize(tokens);
  MEDUSA_ASSERT(count > 0 && features.size(0) == count, features.size(0), count);
  cache_.reserve(length() + count + model_.most_behind_);
  at::Tensor states;
  for (int64_t begin = 0; begin < count; begin += kRowsPerPass) {
    const int64_t n = std::min(kRowsPerPass, count - begin);
    const Segment segment{
        cache_.slot(), tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(n)), {}};
    states = model_.run(segment, model_.fuse(features.narrow(0, begin, n)), cache_.cache());
    cache_.commit(n);
  }
  return states.narrow(0, states.size(0) - 1, 1);
}

at::Tensor Eagle3Text::grow(std::span<const TokenId> tokens, std::span<const int32_t> parents,
                            const at::Tensor& hidden) {
  const c10::InferenceMode no_grad;
  MEDUSA_ASSERT(std::ssize(tokens) <= model_.most_behind_, tokens.size());
  const auto first = static_cast<int32_t>(std::ssize(tokens) - hidden.size(0));
  return model_.run({cache_.slot(), tokens, parents, first}, hidden, cache_.cache());
}

}  // namespace medusa
