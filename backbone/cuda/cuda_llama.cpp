#include "backbone/cuda/cuda_llama.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "backbone/cuda/device_tensors.h"
#include "base/check.h"
#include "base/error.h"

namespace medusa {

bool CudaLlama::supports(const Weights& weights, const DeviceKernels& kernels) {
  const ModelConfig& c = weights.config;
  const auto divides = [](int64_t size) { return size % 32 == 0; };
  return kernels.complete() && weights.embedding.scalar_type() == at::kBFloat16 &&
         divides(c.hidden_size) && divides(c.mlp_size) && divides(c.num_heads * c.head_size) &&
         kernels.layers->supports(c.head_size, c.num_heads / c.num_kv_heads);
}

CudaLlama::CudaLlama(const Weights& weights, const DeviceKernels& kernels)
    : config_(weights.config),
      kernels_(kernels),
      embedding_(weights.embedding.contiguous()),
      final_norm_(weights.final_norm.contiguous()),
      num_squares_((config_.hidden_size + 511) / 512 * 4) {  // one for 128 elements, and zeros
  MEDUSA_ASSERT(supports(weights, kernels));
  ModelConfig longer = config_;
  longer.context += kRowsBehind;
  rope_ = make_rope_table(longer, weights.embedding.device());
  sums_ = at::empty({1}, embedding_.options().dtype(at::kFloat));
  if (weights.lm_head.defined()) lm_head_ = gemm(weights.lm_head, weights.lm_head_quantized);
  if (kernels.runtime == nullptr) return;
  placed_.emplace(*kernels.runtime, tile_rows(), embedding_.device());
  graphs_.emplace(*kernels.runtime);
}

/// @param blocks  instead of the weight, where weights are quantized.
DeviceGemm CudaLlama::gemm(const at::Tensor& weight, const QuantizedMatrix& blocks) {
  auto stored = blocks.defined() ? device_weight(blocks, embedding_.device())
                                 : device_weight(weight, embedding_.device());
  if (!stored)
    throw UserError(
        "backbone.dtype: a matrix of the model is stored in blocks that have no product on a GPU, "
        "expected blocks of 32 with one scale; use --dtype bfloat16 or int8");
  DeviceGemm gemm(*kernels_.gemms, std::move(*stored));
  if (gemm.scratch() > sums_.numel()) sums_ = at::empty({gemm.scratch()}, sums_.options());
  return gemm;
}

void CudaLlama::add_layer(const LayerWeights& layer) {
  const at::Device device = embedding_.device();
  const auto here = [&](const at::Tensor& elements) {
    return elements.defined() ? elements.to(device, at::kFloat).contiguous() : elements;
  };
  const LayerQuantized& blocks = layer.blocks;
  layers_.push_back({here(layer.attention_norm), here(layer.mlp_norm), here(layer.qkv_bias),
                     here(layer.query_norm), here(layer.key_norm), gemm(layer.qkv, blocks.qkv),
                     gemm(layer.output, blocks.output), gemm(layer.gate_up, blocks.gate_up),
                     gemm(layer.down, blocks.down)});
  all_layers_.push_back(static_cast<int32_t>(all_layers_.size()));
  const Layer& added = layers_.back();
  for (const DeviceGemm* each : {&added.qkv, &added.output, &added.gate_up, &added.down})
    if (!each->folds_norm()) num_squares_ = 0;
}

int32_t CudaLlama::tile_rows() const {
  return kernels_.layers->tile_rows(config_.num_heads / config_.num_kv_heads);
}

void CudaLlama::reserve(int64_t num_rows, int64_t max_context) {
  if (num_rows <= rows_ && max_context <= context_) return;
  const ModelConfig& c = config_;
  ++generation_;
  rows_ = std::max(rows_, num_rows);
  context_ = std::max(context_, max_context);
  const auto buffer = [&](int64_t size, at::ScalarType dtype) {
    return at::empty({rows_, size}, embedding_.options().dtype(dtype));
  };
  const int64_t heads = c.num_heads * c.head_size;
  x_ = buffer(c.hidden_size, at::kFloat);
  wide_ = buffer(std::max(heads + 2 * c.num_kv_heads * c.head_size, 2 * c.mlp_size), at::kFloat);
  normed_ = buffer(c.hidden_size, at::kBFloat16);
  squares_ = at::zeros({rows_, num_squares_}, x_.options());
  query_ = buffer(heads, at::kBFloat16);
  attention_out_ = buffer(heads, at::kBFloat16);
  activated_ = buffer(c.mlp_size, at::kBFloat16);
  const int64_t scratch =
      kernels_.layers->attention_scratch(rows_, c.num_heads, c.head_size, context_);
  scratch_ = at::empty({std::max<int64_t>(scratch, 1)}, embedding_.options().dtype(at::kFloat));
  arrived_ = at::zeros({rows_, c.num_kv_heads}, embedding_.options().dtype(at::kInt));
}

void CudaLlama::reserve_logits(int64_t num_rows) {
  if (logits_.defined() && logits_.size(0) >= num_rows) return;
  ++generation_;
  logits_ = at::empty({num_rows, config_.vocab_size}, embedding_.options().dtype(at::kFloat));
}

void CudaLlama::norm(const at::Tensor& weight, bool folded, int64_t num_rows, DeviceStream stream) {
  NormArgs args;
  args.x = elements<float>(x_);
  args.weight = elements<float>(weight);
  args.epsilon = static_cast<float>(config_.norm_epsilon);
  args.num_rows = num_rows;
  args.hidden_size = config_.hidden_size;
  args.out = elements<Bf16>(normed_);
  if (folded) {
    args.squares = elements<float>(squares_);
    args.num_squares = num_squares_;
  }
  kernels_.layers->norm(args, stream);
}

NormedRows CudaLlama::normed_rows() const {
  NormedRows rows(elements<Bf16>(normed_));
  if (num_squares_ == 0) return rows;
  rows.squares = elements<float>(squares_);
  rows.num_squares = num_squares_;
  rows.epsilon = static_cast<float>(config_.norm_epsilon);
  return rows;
}

NormBehind CudaLlama::norm_behind(const at::Tensor& weight) {
  if (num_squares_ == 0) return {};
  return {elements<float>(weight), elements<Bf16>(normed_), elements<float>(squares_),
          num_squares_};
}

void CudaLlama::run_layer(int64_t index, const DevicePass& pass, const DeviceCache& cache,
                          const at::Tensor* norm_weight, DeviceStream stream) {
  const ModelConfig& c = config_;
  const Layer& layer = layers_[static_cast<size_t>(index)];
  const int64_t n = pass.rows.count;

  RopeAndCacheArgs heads;
  heads.rows = pass.rows;
  heads.bias = elements<float>(layer.qkv_bias);
  heads.query_norm = elements<float>(layer.query_norm);
  heads.key_norm = elements<float>(layer.key_norm);
  heads.epsilon = static_cast<float>(c.norm_epsilon);
  if (c.uses_rope(index)) {
    heads.cos = elements<float>(rope_.cos);
    heads.sin = elements<float>(rope_.sin);
  }
  heads.num_heads = c.num_heads;
  heads.cache = cache;
  heads.layer = index;
  heads.query = elements<Bf16>(query_);
  if (layer.qkv.has_rope_and_cache(heads)) {
    layer.qkv.rope_and_cache(normed_rows(), n, elements<float>(sums_), heads, stream);
    record(ForwardStage::Qkv);
  } else {
    layer.qkv(normed_rows(), n, elements<float>(sums_), elements<float>(wide_), stream);
    record(ForwardStage::Qkv);
    heads.qkv = elements<float>(wide_);
    kernels_.layers->rope_and_cache(heads, stream);
  }
  record(ForwardStage::Rope);

  TreeAttentionArgs attention;
  attention.rows = pass.rows;
  attention.tiles = pass.tiles;
  attention.num_tiles = pass.num_tiles;
  attention.tile_rows = tile_rows();
  attention.query = elements<Bf16>(query_);
  attention.num_heads = c.num_heads;
  attention.cache = cache;
  attention.layer = index;
  attention.window = c.window(index);
  attention.max_context = pass.max_context;
  attention.scratch = elements<float>(scratch_);
  attention.arrived = elements<int32_t>(arrived_);
  attention.out = elements<Bf16>(attention_out_);
  kernels_.layers->attend(attention, stream);
  record(ForwardStage::Attention);
  layer.output.add(elements<Bf16>(attention_out_), n, elements<float>(sums_), elements<float>(x_),
                   stream, norm_behind(layer.mlp_norm));
  record(ForwardStage::Output);

  if (num_squares_ == 0) norm(layer.mlp_norm, false, n, stream);
  record(ForwardStage::MlpNorm);
  if (layer.gate_up.has_silu_mul()) {
    layer.gate_up.silu_mul(normed_rows(), n, elements<float>(sums_), elements<Bf16>(activated_),
                           stream);
    record(ForwardStage::GateUp);
  } else {
    layer.gate_up(normed_rows(), n, elements<float>(sums_), elements<float>(wide_), stream);
    record(ForwardStage::GateUp);
    kernels_.layers->silu_mul({elements<float>(wide_), n, c.mlp_size, elements<Bf16>(activated_)},
                              stream);
  }
  record(ForwardStage::Activation);
  layer.down.add(elements<Bf16>(activated_), n, elements<float>(sums_), elements<float>(x_), stream,
                 norm_weight != nullptr ? norm_behind(*norm_weight) : NormBehind{});
  record(ForwardStage::Down);
}

void CudaLlama::run_pass(const DevicePass& pass, const DeviceCache& cache,
                         std::span<const int32_t> layers, Features* features, DeviceStream stream) {
  const int64_t n = pass.rows.count;
  MEDUSA_ASSERT(n <= rows_ && pass.max_context <= context_, n, rows_, pass.max_context, context_);
  kernels_.layers->embed(
      {pass.rows, elements<Bf16>(embedding_), config_.hidden_size, elements<float>(x_)}, stream);
  record(ForwardStage::Embedding);
  run_layers(pass, cache, layers, features, stream);
  norm(final_norm_, false, n, stream);
  if (features != nullptr) features->take(config_.num_layers, x_);
  record(ForwardStage::FinalNorm);
}

void CudaLlama::run_layers(const DevicePass& pass, const DeviceCache& cache,
                           std::span<const int32_t> layers, Features* features,
                           DeviceStream stream) {
  MEDUSA_ASSERT(!layers.empty());
  const bool folds = num_squares_ != 0;
  const auto norm_of = [&](int32_t l) -> const at::Tensor& {
    return layers_[static_cast<size_t>(l)].attention_norm;
  };
  for (size_t i = 0; i < layers.size(); ++i) {
    const int32_t l = layers[i];
    if (features != nullptr) features->take(l, x_);
    if (i == 0 || !folds) norm(norm_of(l), folds, pass.rows.count, stream);
    record(ForwardStage::AttentionNorm);
    run_layer(l, pass, cache, i + 1 < layers.size() ? &norm_of(layers[i + 1]) : nullptr, stream);
  }
}

const Bf16* CudaLlama::run(const DevicePass& pass, const DeviceCache& cache, DeviceStream stream) {
  if (timer_ != nullptr) timer_->begin();
  run_pass(pass, cache, all_layers_, nullptr, stream);
  return elements<Bf16>(normed_);
}

namespace {

/// Room for so many rows: by doubling, so that buffers seldom move under the graphs.
int64_t doubled(int64_t num_rows) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(num_rows)));
}

}  // namespace

/// Features are tensors that a pass makes, and a timer stands between kernels.
bool CudaLlama::captures(const ForwardPlan& plan, const Features* features) const {
  return uses_graphs_ && placed_ && plan.size() <= PlacedPlan::kMostRows && features == nullptr &&
         timer_ == nullptr;
}

void CudaLlama::forward_captured(const ForwardPlan& plan, const KvCache& cache,
                                 std::span<const int32_t> layers) {
  DevicePass pass = placed_->send(plan);
  pass.max_context = captured_context(pass.max_context, cache.capacity());
  reserve(doubled(plan.size()), pass.max_context);
  const CapturedPass kind{pass.rows.count,
                          pass.num_tiles,
                          pass.max_context,
                          {layers.begin(), layers.end()},
                          device_view(cache)};
  graphs_->run(kind, generation_, [this, pass, kind](DeviceStream stream) {
    run_pass(pass, kind.cache, kind.layers, nullptr, stream);
  });
}

std::vector<CapturedPass> CudaLlama::captured() const {
  return graphs_ ? graphs_->captured() : std::vector<CapturedPass>();
}

at::Tensor CudaLlama::forward(const ForwardPlan& plan, KvCache& cache,
                              std::span<const int32_t> layers, Features* features) {
  const KernelDeviceGuard guard(embedding_.device());
  if (captures(plan, features)) {
    forward_captured(plan, cache, layers);
    return normed_.narrow(0, 0, plan.size());
  }
  const UploadedPlan rows(plan, tile_rows(), embedding_.device());
  reserve(plan.size(), rows.pass().max_context);
  run_pass(rows.pass(), device_view(cache), layers, features, nullptr);
  return normed_.narrow(0, 0, plan.size());
}

at::Tensor CudaLlama::run_layers(const ForwardPlan& plan, const at::Tensor& x, KvCache& cache) {
  const KernelDeviceGuard guard(embedding_.device());
  const UploadedPlan rows(plan, tile_rows(), embedding_.device());
  const int64_t n = plan.size();
  reserve(n, rows.pass().max_context);
  x_.narrow(0, 0, n).copy_(x);
  run_layers(rows.pass(), device_view(cache), all_layers_, nullptr, nullptr);
  return x_.narrow(0, 0, n);
}

const float* CudaLlama::run_logits(const Bf16* hidden, int64_t num_rows, DeviceStream stream) {
  reserve_logits(num_rows);
  lm_head_(NormedRows(hidden), num_rows, elements<float>(sums_), elements<float>(logits_), stream);
  return elements<float>(logits_);
}

at::Tensor CudaLlama::logits(const at::Tensor& hidden) {
  const KernelDeviceGuard guard(embedding_.device());
  const int64_t n = hidden.size(0);
  reserve_logits(doubled(n));
  run_logits(elements<Bf16>(hidden.contiguous()), n, nullptr);
  return logits_.narrow(0, 0, n);
}

std::array<int64_t, kNumForwardStages> CudaLlama::weight_bytes() const {
  std::array<int64_t, kNumForwardStages> bytes{};
  const auto add = [&bytes](ForwardStage stage, const DeviceGemm& gemm) {
    bytes[static_cast<size_t>(stage)] += gemm.bytes();
  };
  for (const Layer& layer : layers_) {
    add(ForwardStage::Qkv, layer.qkv);
    add(ForwardStage::Output, layer.output);
    add(ForwardStage::GateUp, layer.gate_up);
    add(ForwardStage::Down, layer.down);
  }
  if (lm_head_.defined()) add(ForwardStage::LmHead, lm_head_);
  return bytes;
}

}  // namespace medusa
