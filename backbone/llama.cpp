#include "backbone/llama.h"

#include <ATen/ops/cat.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "backbone/files/load_weights.h"
#include "base/check.h"
#include "base/interrupt.h"

namespace medusa {
namespace {

constexpr int64_t kPrefillRows =
    128;  // per pass: enough rows to be efficient, few enough for the scratch

}  // namespace

Llama::Llama(Weights weights, ExecutionContext execution)
    : weights_(std::move(weights)), execution_(std::move(execution)) {
  std::vector<LayerWeights> layers = std::exchange(weights_.layers, {});
  backend_ = make_llama_backend(weights_, execution_);
  take_layers(std::move(layers));
}

Llama::Llama(WeightsReader& reader, ExecutionContext execution)
    : weights_(reader.non_layer()), execution_(std::move(execution)) {
  backend_ = make_llama_backend(weights_, execution_);
  take_layers([&reader] { return reader.next_layer(); });
}

Llama::Llama(Weights weights, std::unique_ptr<LlamaBackend> backend)
    : weights_(std::move(weights)), backend_(std::move(backend)) {
  take_layers(std::exchange(weights_.layers, {}));
}

/// Each is let go as soon as it was taken.
void Llama::take_layers(std::vector<LayerWeights> layers) {
  MEDUSA_ASSERT(static_cast<int64_t>(layers.size()) == config().num_layers, layers.size());
  auto layer = layers.begin();
  take_layers([&layer] { return std::exchange(*layer++, {}); });
}

/// @param next  gives layer after layer.
void Llama::take_layers(const std::function<LayerWeights()>& next) {
  weights_.lm_head_quantized = {};  // the backend has what it needs of them
  all_layers_.resize(static_cast<size_t>(config().num_layers));
  std::iota(all_layers_.begin(), all_layers_.end(), 0);
  for (int64_t i = 0; i < config().num_layers; ++i) {
    stop_if_interrupted();  // a large model is read for minutes
    backend_->add_layer(next());
  }
}

at::ScalarType Llama::dtype() const { return weights_.embedding.scalar_type(); }
at::Device Llama::device() const { return weights_.embedding.device(); }
const char* Llama::dtype_name() const {
  switch (weights_.kind) {
    case QuantKind::Int8:
      return "int8";
    case QuantKind::Stored:
      return "stored";
    case QuantKind::None:
      break;
  }
  return dtype() == at::kFloat ? "float32" : "bfloat16";
}

KvCache Llama::make_cache(int32_t num_slots, int64_t capacity,
                          std::optional<int64_t> max_bytes) const {
  return {config(), num_slots,          capacity + backend_->rows_behind(),        dtype(),
          device(), backend_->layout(), {backend_->reads_whole_slots(), max_bytes}};
}

int64_t Llama::cache_bytes(int64_t capacity) const {
  return KvCache::slot_bytes(config(), capacity + backend_->rows_behind(), dtype(),
                             backend_->reads_whole_slots());
}

ForwardPlan Llama::checked_plan(std::span<const Segment> segments, KvCache& cache) const {
  ForwardPlan plan = plan_forward(segments, cache);
  for (const BatchToken& row : plan.rows)
    MEDUSA_ASSERT(
        row.token >= 0 && row.token < config().vocab_size && row.position < config().context,
        row.token, row.position);
  return plan;
}

at::Tensor Llama::run_layers(std::span<const Segment> segments, const at::Tensor& x,
                             KvCache& cache) {
  const c10::InferenceMode no_grad;
  const ForwardPlan plan = checked_plan(segments, cache);
  MEDUSA_ASSERT(x.size(0) == plan.size() && x.scalar_type() == at::kFloat, x.size(0), plan.size());
  return backend_->run_layers(plan, x, cache);
}

at::Tensor Llama::forward(std::span<const Segment> segments, KvCache& cache,
                          std::span<const int32_t> layers, Features* features) {
  const c10::InferenceMode no_grad;
  if (features != nullptr) {
    MEDUSA_ASSERT(layers.empty() && !features->layers.empty() && !features->rows.empty());
    MEDUSA_ASSERT(std::is_sorted(features->layers.begin(), features->layers.end()) &&
                  features->layers.front() >= 0 && features->layers.back() <= config().num_layers);
    features->values = at::Tensor();
  }
  if (layers.empty()) layers = all_layers_;
  const ForwardPlan plan = checked_plan(segments, cache);
  if (timer_ != nullptr) timer_->begin();
  return backend_->forward(plan, cache, layers, features);
}

at::Tensor Llama::logits(const at::Tensor& hidden) {
  const c10::InferenceMode no_grad;
  if (timer_ != nullptr) timer_->begin();
  at::Tensor logits = backend_->logits(hidden);
  if (timer_ != nullptr) timer_->record(ForwardStage::LmHead);
  return logits;
}

void Llama::set_timer(StageTimer* timer) {
  timer_ = timer;
  backend_->set_timer(timer);
}

/// @param take  is given the states of each chunk, [n, H].
void Llama::run_prompt(int32_t slot, std::span<const TokenId> tokens, KvCache& cache,
                       const std::function<void(const at::Tensor& hidden)>& take) {
  MEDUSA_ASSERT(!tokens.empty());
  while (!tokens.empty()) {
    const size_t n = std::min(tokens.size(), static_cast<size_t>(kPrefillRows));
    const Segment chunk{slot, tokens.first(n), {}};
    take(forward({&chunk, 1}, cache));
    std::vector<int32_t> rows(n);
    std::iota(rows.begin(), rows.end(), 0);
    cache.commit(slot, rows);
    tokens = tokens.subspan(n);
  }
}

at::Tensor Llama::prefill(int32_t slot, std::span<const TokenId> tokens, KvCache& cache) {
  at::Tensor last;
  run_prompt(slot, tokens, cache, [&](const at::Tensor& hidden) { last = hidden[-1].clone(); });
  return last;
}

at::Tensor Llama::states(int32_t slot, std::span<const TokenId> tokens, KvCache& cache) {
  std::vector<at::Tensor> parts;
  run_prompt(slot, tokens, cache, [&](const at::Tensor& hidden) {
    parts.push_back(hidden.to(at::kCPU, at::kBFloat16, /*non_blocking=*/false, /*copy=*/true));
  });
  return at::cat(parts);
}

}  // namespace medusa
