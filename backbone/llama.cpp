#include "backbone/llama.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "backbone/attention.h"
#include "backbone/cpu/fused_llama.h"
#include "backbone/cuda/device_llama.h"
#include "backbone/files/weights_reader.h"
#include "backbone/rms_norm.h"
#include "base/check.h"
#include "base/error.h"

namespace medusa {
namespace {

constexpr int64_t kPrefillRows =
    128;  // per pass: enough rows to be efficient, few enough for the scratch

at::Tensor to_device(const std::vector<int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device);
}

}  // namespace

Llama::Llama(Weights weights, ExecutionContext execution)
    : weights_(std::move(weights)), execution_(std::move(execution)) {
  std::vector<LayerWeights> layers = std::exchange(weights_.layers, {});
  fast_ = choose_fast();
  take_layers(layers);
}

Llama::Llama(Weights weights, const DeviceKernels& kernels) : weights_(std::move(weights)) {
  std::vector<LayerWeights> layers = std::exchange(weights_.layers, {});
  fast_ = run_on(kernels);
  take_layers(layers);
}

Llama::Llama(WeightsReader& reader, ExecutionContext execution)
    : weights_(reader.ends()), execution_(std::move(execution)) {
  fast_ = choose_fast();
  take_layers([&reader] { return reader.next_layer(); });
}

/// Null: the plain path is to run.
std::unique_ptr<FastLlama> Llama::choose_fast() {
  if (execution_.kernels() == Kernels::Plain) return nullptr;
  if (FusedLlama::supports(weights_, execution_.isa()))
    return std::make_unique<FusedLlama>(weights_, execution_);
  if (device().is_cuda() && DeviceLlama::supports(weights_, cuda_kernels()))
    return run_on(cuda_kernels());
  if (weights_.kind != BlockKind::None && !device().is_cpu())
    throw UserError(fmt::format(
        "backbone.dtype is '{}', found a model with heads of {} numbers, {} to a key/value head, "
        "expected sizes that our kernels multiply on a GPU (docs/guide/gpu.md); use --dtype "
        "bfloat16",
        number_format(), config().head_size, config().num_heads / config().num_kv_heads));
  return nullptr;
}

std::unique_ptr<FastLlama> Llama::run_on(const DeviceKernels& kernels) {
  auto fast = std::make_unique<DeviceLlama>(weights_, kernels);
  on_device_ = fast.get();
  return fast;
}

/// Each is let go as soon as it was taken.
void Llama::take_layers(std::vector<LayerWeights>& layers) {
  MEDUSA_ASSERT(static_cast<int64_t>(layers.size()) == config().num_layers, layers.size());
  auto layer = layers.begin();
  take_layers([&layer] { return std::exchange(*layer++, {}); });
}

/// @param next  gives layer after layer.
void Llama::take_layers(const std::function<LayerWeights()>& next) {
  const ModelConfig& c = config();
  all_layers_.resize(static_cast<size_t>(c.num_layers));
  std::iota(all_layers_.begin(), all_layers_.end(), 0);
  if (fast_) {
    weights_.lm_head_blocks = {};
    for (int64_t i = 0; i < c.num_layers; ++i) fast_->add_layer(next());
    return;  // what it keeps replaces weights_.layers
  }
  for (int64_t i = 0; i < c.num_layers; ++i) weights_.layers.push_back(next());
  rope_ = make_rope_table(c, device());
  make_products();
}

void Llama::make_products() {
  const bool in_blocks = weights_.kind != BlockKind::None;
  const auto product = [&](const at::Tensor& weight) { return Linear(weight, execution_); };
  for (const LayerWeights& layer : weights_.layers) {
    const LayerBlocks& blocks = layer.blocks;
    if (in_blocks)
      layers_.push_back(
          {Linear(blocks.qkv), Linear(blocks.output), Linear(blocks.gate_up), Linear(blocks.down)});
    else
      layers_.push_back(
          {product(layer.qkv), product(layer.output), product(layer.gate_up), product(layer.down)});
  }
  if (weights_.lm_head.defined())
    lm_head_ = in_blocks ? Linear(weights_.lm_head_blocks) : product(weights_.lm_head);
}

/// Of the rows that enter products: those of block weights are rounded there, not before.
at::ScalarType Llama::product_dtype() const {
  return weights_.kind == BlockKind::None ? dtype() : at::kFloat;
}

Llama::~Llama() = default;

at::ScalarType Llama::dtype() const { return weights_.embedding.scalar_type(); }
at::Device Llama::device() const { return weights_.embedding.device(); }
const char* Llama::number_format() const {
  switch (weights_.kind) {
    case BlockKind::Int8:
      return "int8";
    case BlockKind::Stored:
      return "stored";
    case BlockKind::None:
      break;
  }
  return dtype() == at::kFloat ? "float32" : "bfloat16";
}
const char* Llama::kernels() const { return fast_ ? fast_->name() : "LibTorch"; }

KvCache Llama::make_cache(int32_t num_slots, int64_t capacity) const {
  if (on_device_ != nullptr) capacity += DeviceLlama::kRowsBehind;
  return {config(), num_slots, capacity,
          dtype(),  device(),  fast_ ? fast_->layout() : KvLayout::Rows};
}

RowPlan Llama::checked_plan(std::span<const Segment> segments, const KvCache& cache) const {
  RowPlan plan = plan_rows(segments, cache);
  for (const PlannedRow& row : plan.rows)
    MEDUSA_ASSERT(
        row.token >= 0 && row.token < config().vocab_size && row.position < config().context,
        row.token, row.position);
  return plan;
}

at::Tensor Llama::run_layers(std::span<const Segment> segments, const at::Tensor& x,
                             KvCache& cache) {
  const c10::InferenceMode no_grad;
  const RowPlan plan = checked_plan(segments, cache);
  MEDUSA_ASSERT(x.size(0) == plan.size() && x.scalar_type() == at::kFloat, x.size(0), plan.size());
  return fast_ ? fast_->run_layers(plan, x, cache) : plain_layers(plan, x, cache, all_layers_);
}

at::Tensor Llama::forward(std::span<const Segment> segments, KvCache& cache,
                          std::span<const int32_t> layers) {
  const c10::InferenceMode no_grad;
  if (layers.empty()) layers = all_layers_;
  const RowPlan plan = checked_plan(segments, cache);
  if (clock_ != nullptr) clock_->begin();
  return fast_ ? fast_->forward(plan, cache, layers) : plain_forward(plan, cache, layers);
}

at::Tensor Llama::plain_forward(const RowPlan& plan, KvCache& cache,
                                std::span<const int32_t> layers) {
  std::vector<int64_t> tokens;
  for (const PlannedRow& row : plan.rows) tokens.push_back(row.token);
  at::Tensor x =
      weights_.embedding.index_select(0, to_device(tokens, device())).to(at::kFloat);  // [N, H]
  lap(PassPart::Embedding);
  x = plain_layers(plan, x, cache, layers);
  at::Tensor hidden = rms_norm(x, weights_.final_norm, config().norm_epsilon).to(dtype());
  lap(PassPart::FinalNorm);
  return hidden;
}

/// @param x  [N, H] float32: the residual stream, which is float32 in every dtype.
at::Tensor Llama::plain_layers(const RowPlan& plan, at::Tensor x, KvCache& cache,
                               std::span<const int32_t> layers) {
  const ModelConfig& c = config();
  const int64_t n = plan.size(), query_size = c.num_heads * c.head_size,
                kv_size = c.num_kv_heads * c.head_size;
  std::vector<int64_t> positions;
  for (const PlannedRow& row : plan.rows) positions.push_back(row.position);
  const at::Tensor at_position = to_device(positions, device());
  AttentionMasks masks(plan, device());
  const at::ScalarType rows = product_dtype();  // products take rows in the weights' dtype

  for (const int32_t l : layers) {
    const LayerWeights& layer = weights_.layers[static_cast<size_t>(l)];
    const Products& product = layers_[static_cast<size_t>(l)];

    at::Tensor input = rms_norm(x, layer.attention_norm, c.norm_epsilon).to(rows);
    lap(PassPart::AttentionNorm);
    at::Tensor qkv = product.qkv(input);
    if (layer.qkv_bias.defined()) qkv = qkv + layer.qkv_bias;
    lap(PassPart::Qkv);
    const auto parts = qkv.split_with_sizes({query_size, kv_size, kv_size}, -1);
    const auto place = [&](const at::Tensor& part, int64_t heads, const at::Tensor& norm) {
      at::Tensor y = part.reshape({n, heads, -1});
      if (norm.defined()) y = rms_norm(y, norm, c.norm_epsilon);
      return c.turns(l) ? apply_rope(y, at_position, rope_) : y;
    };
    const at::Tensor query = place(parts[0], c.num_heads, layer.query_norm);
    const at::Tensor key = place(parts[1], c.num_kv_heads, layer.key_norm);
    lap(PassPart::Rope);
    write_cache(plan, l, key, parts[2].reshape({n, c.num_kv_heads, -1}), cache);
    lap(PassPart::CacheWrite);
    const at::Tensor rounded = query.to(dtype()).to(at::kFloat);  // as precise as the keys it meets
    const at::Tensor mixed =
        device().is_cpu()
            ? path_attention(plan, l, rounded, cache, c.window(l))
            : masked_attention(plan, l, rounded, cache, masks, c.window(l));  // [N, A D]
    lap(PassPart::Attention);
    x = x + product.output(mixed.to(rows));
    lap(PassPart::Output);

    input = rms_norm(x, layer.mlp_norm, c.norm_epsilon).to(rows);
    lap(PassPart::MlpNorm);
    const auto halves = product.gate_up(input).chunk(2, -1);  // [N, I] each
    lap(PassPart::GateUp);
    input = (at::silu(halves[0]) * halves[1]).to(rows);
    lap(PassPart::Activation);
    x = x + product.down(input);
    lap(PassPart::Down);
  }
  return x;
}

at::Tensor Llama::logits(const at::Tensor& hidden) {
  const c10::InferenceMode no_grad;
  if (clock_ != nullptr) clock_->begin();
  at::Tensor logits = fast_ ? fast_->logits(hidden) : lm_head_(hidden.to(product_dtype()));
  lap(PassPart::LmHead);
  return logits;
}

void Llama::set_clock(PartClock* clock) {
  clock_ = clock;
  if (fast_) fast_->set_clock(clock);
}

std::array<int64_t, kNumPassParts> Llama::weight_bytes() const {
  if (fast_) return fast_->weight_bytes();
  std::array<int64_t, kNumPassParts> bytes{};
  const auto add = [&bytes](PassPart part, const at::Tensor& weight, const BlockMatrix& blocks) {
    for (const at::Tensor* each : {&weight, &blocks.levels, &blocks.scales, &blocks.offsets})
      if (each->defined()) bytes[static_cast<size_t>(part)] += static_cast<int64_t>(each->nbytes());
  };
  for (const LayerWeights& layer : weights_.layers) {
    add(PassPart::Qkv, layer.qkv, layer.blocks.qkv);
    add(PassPart::Output, layer.output, layer.blocks.output);
    add(PassPart::GateUp, layer.gate_up, layer.blocks.gate_up);
    add(PassPart::Down, layer.down, layer.blocks.down);
  }
  const bool in_blocks = weights_.kind != BlockKind::None;  // the plain ones are the embedding's
  add(PassPart::LmHead, in_blocks ? at::Tensor() : weights_.lm_head, weights_.lm_head_blocks);
  return bytes;
}

at::Tensor Llama::prefill(int32_t slot, std::span<const TokenId> tokens, KvCache& cache) {
  MEDUSA_ASSERT(!tokens.empty());
  at::Tensor last;
  while (!tokens.empty()) {
    const size_t n = std::min(tokens.size(), static_cast<size_t>(kPrefillRows));
    const Segment chunk{slot, tokens.first(n), {}};
    const at::Tensor hidden = forward({&chunk, 1}, cache);
    std::vector<int32_t> rows(n);
    for (size_t i = 0; i < n; ++i) rows[i] = static_cast<int32_t>(i);
    cache.commit(slot, rows);
    tokens = tokens.subspan(n);
    if (tokens.empty()) last = hidden[static_cast<int64_t>(n) - 1].clone();
  }
  return last;
}

}  // namespace medusa
