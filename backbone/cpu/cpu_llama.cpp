#include "backbone/cpu/cpu_llama.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cpu/fused_buffers.h"
#include "backbone/cpu/layout/quant_layout.h"
#include "backbone/cpu/layout/tile_weight.h"
#include "backbone/cpu/ops/attention_plan.h"
#include "backbone/cpu/threads/thread_pool.h"
#include "backbone/files/tensor_check.h"
#include "backbone/rope.h"
#include "base/check.h"

namespace medusa {
namespace {

uint16_t* bits(const at::Tensor& bfloat16) { return static_cast<uint16_t*>(bfloat16.data_ptr()); }
float* floats(const at::Tensor& float32) { return static_cast<float*>(float32.data_ptr()); }

/// One layer's weights, packed.
struct PackedLayer {
  at::Tensor attention_norm, mlp_norm;  // [H] float32
  at::Tensor qkv_bias;                  // in the order of qkv's outputs, or undefined
  at::Tensor query_norm, key_norm;      // [D] in the order of a head's outputs, or undefined
  TileWeight qkv, output, gate_up, down;
};

/// In which order outputs stand in packed weights.
struct OutputOrders {
  explicit OutputOrders(const ModelConfig& c)
      : qkv(qkv_order(c.num_heads + c.num_kv_heads, c.num_kv_heads, c.head_size)),
        gate_up(gate_up_order(c.mlp_size)) {}
  std::vector<int64_t> qkv, gate_up;
};

template <typename Matrices>
void pack(const Matrices& from, const OutputOrders& orders, PackedLayer& to) {
  to.qkv = TileWeight(from.qkv, orders.qkv);
  to.output = TileWeight(from.output);
  to.gate_up = TileWeight(from.gate_up, orders.gate_up);
  to.down = TileWeight(from.down);
}

at::Tensor in_order(const at::Tensor& elements, std::span<const int64_t> order) {
  if (!elements.defined()) return {};
  const at::Tensor index = at::tensor(at::ArrayRef<int64_t>(order.data(), order.size()), at::kLong);
  return elements.index_select(0, index).contiguous();
}

class CpuLlama : public LlamaBackend {
 public:
  CpuLlama(const Weights& non_layer, const CpuKernels& kernels, std::shared_ptr<ThreadPool> pool);

  void add_layer(const LayerWeights& layer) override;
  at::Tensor forward(const ForwardPlan& plan, KvCache& cache, std::span<const int32_t> layers,
                     Features* features) override;
  at::Tensor run_layers(const ForwardPlan& plan, const at::Tensor& x, KvCache& cache) override;
  at::Tensor logits(const at::Tensor& hidden) override;
  bool uses_pool() const override { return true; }
  KvLayout layout() const override { return KvLayout::Tiles; }
  void set_timer(StageTimer* timer) override { timer_ = timer; }
  std::array<int64_t, kNumForwardStages> weight_bytes() const override;
  const char* name() const override { return kernels_.name; }

 private:
  void prepare(const ForwardPlan& plan, KvCache& cache);
  void run_pass(const ForwardPlan& plan, std::span<const int32_t> layers, Features* features,
                int thread);
  void take_features(Features* features, int64_t layer, Range rows);
  void run_layer(size_t layer, int thread);
  void embed(const ForwardPlan& plan, Range rows);
  void rms_norm(const at::Tensor& norm, Range rows);
  AttentionLayer attention_of(size_t layer) const;
  void project(const PackedLayer& weights, const AttentionLayer& attention, int thread);
  void attend(const AttentionLayer& layer, int thread);
  const void* normed_rows() const;
  const void* gemm_rows(const GrowingBuffer& rows, int64_t k, int thread);

  /// Waits for all threads, then reports that this part is done.
  void finish(ForwardStage stage, int thread) {
    pool_->barrier();
    record(stage, thread);
  }
  void record(ForwardStage stage, int thread) {
    if (thread == 0 && timer_ != nullptr) timer_->record(stage);
  }

  Range share(int64_t count, int thread) const {
    return share_of(count, thread, pool_->num_running());
  }
  float epsilon() const { return static_cast<float>(config_.norm_epsilon); }

  const CpuKernels& kernels_;
  ModelConfig config_;
  OutputOrders orders_{config_};
  std::shared_ptr<ThreadPool> pool_;
  at::Tensor embedding_, final_norm_;
  RopeTable rope_;
  std::vector<PackedLayer> layers_;
  TileWeight lm_head_;
  StageTimer* timer_ = nullptr;  // not owned

  // The pass that runs.
  int64_t num_rows_ = 0;
  KvBlocks::Strides strides_;  // of its cache
  AttentionLayer attention_;   // what all layers share
  AttentionPlan plan_;
  RowBuffers buffers_;
  std::vector<ScratchBuffers> scratch_;  // one per thread
  GrowingBuffer tiled_hidden_, hidden_blocks_;
  at::Tensor logits_;
};

CpuLlama::CpuLlama(const Weights& non_layer, const CpuKernels& kernels,
                   std::shared_ptr<ThreadPool> pool)
    : kernels_(kernels),
      config_(non_layer.config),
      pool_(std::move(pool)),
      embedding_(non_layer.embedding.contiguous()),
      final_norm_(non_layer.final_norm.contiguous()),
      rope_(make_rope_table(config_, at::kCPU)) {
  if (non_layer.lm_head.defined())
    lm_head_ = non_layer.kind == QuantKind::None ? TileWeight(non_layer.lm_head)
                                                 : TileWeight(non_layer.lm_head_quantized);
}

void CpuLlama::add_layer(const LayerWeights& layer) {
  const auto order_head = std::span(orders_.qkv).first(static_cast<size_t>(config_.head_size));
  PackedLayer packed;
  packed.attention_norm = layer.attention_norm.contiguous();
  packed.mlp_norm = layer.mlp_norm.contiguous();
  packed.qkv_bias = in_order(layer.qkv_bias, orders_.qkv);
  packed.query_norm = in_order(layer.query_norm, order_head);
  packed.key_norm = in_order(layer.key_norm, order_head);
  MEDUSA_ASSERT(!packed.query_norm.defined() || !packed.qkv_bias.defined());  // rope_and_cache
  if (layer.blocks.qkv.defined())
    pack(layer.blocks, orders_, packed);
  else
    pack(layer, orders_, packed);
  layers_.push_back(std::move(packed));
}

void CpuLlama::prepare(const ForwardPlan& plan, KvCache& cache) {
  MEDUSA_ASSERT(cache.layout() == KvLayout::Tiles && plan.size() > 0, plan.size());
  num_rows_ = plan.size();
  plan_.assign(plan, cache, config_.num_kv_heads, config_.num_heads / config_.num_kv_heads,
               pool_->num_threads());
  buffers_.grow(config_, num_rows_, kernels_.element_bytes, kernels_.quantize != nullptr);
  scratch_.resize(static_cast<size_t>(pool_->num_threads()));
  for (ScratchBuffers& scratch : scratch_)
    scratch.grow(config_.head_size, cache.capacity(), kernels_.element_bytes);
  strides_ = cache.strides();
  MEDUSA_ASSERT(strides_.head == kKvBlockRows * config_.head_size &&
                    strides_.block == config_.num_kv_heads * strides_.head,
                strides_.head, strides_.block);
  attention_ = {.num_heads = config_.num_heads,
                .num_kv_heads = config_.num_kv_heads,
                .head_size = config_.head_size,
                .rows = plan_.rows.data(),
                .norm_epsilon = epsilon(),
                .cos = floats(rope_.cos),
                .sin = floats(rope_.sin),
                .query = buffers_.query.data(),
                .query_rows = buffers_.query_rows(config_),
                .pass_values = buffers_.pass_values.data<uint16_t>(),
                .pass_rows = buffers_.max_rows,
                .block_stride = strides_.block,
                .attention_out = buffers_.attention_out.data(),
                .attention_out_depth = ceil_div(config_.num_heads * config_.head_size, kTileDepth)};
}

at::Tensor CpuLlama::forward(const ForwardPlan& plan, KvCache& cache,
                             std::span<const int32_t> layers, Features* features) {
  prepare(plan, cache);
  if (features != nullptr)
    features->values =
        at::empty({std::ssize(features->rows), std::ssize(features->layers), config_.hidden_size},
                  at::kFloat);
  pool_->run([&](int thread) { run_pass(plan, layers, features, thread); });
  record(ForwardStage::FinalNorm, 0);
  return buffers_.hidden.narrow(0, 0, num_rows_);
}

at::Tensor CpuLlama::run_layers(const ForwardPlan& plan, const at::Tensor& x, KvCache& cache) {
  check_shape(x, "x", {plan.size(), config_.hidden_size});
  prepare(plan, cache);
  at::Tensor residual =
      at::from_blob(buffers_.residual.data(), {num_rows_, config_.hidden_size}, at::kFloat);
  residual.copy_(x);
  pool_->run([&](int thread) {
    const KernelRegion region(kernels_);
    for (size_t layer = 0; layer < layers_.size(); ++layer) run_layer(layer, thread);
  });
  return residual.clone();
}

void CpuLlama::run_pass(const ForwardPlan& plan, std::span<const int32_t> layers,
                        Features* features, int thread) {
  const KernelRegion region(kernels_);
  const Range rows = share(num_rows_, thread);
  embed(plan, rows);
  record(ForwardStage::Embedding, thread);
  for (const int32_t layer : layers) {
    take_features(features, layer, rows);
    run_layer(static_cast<size_t>(layer), thread);
  }
  take_features(features, std::ssize(layers_), rows);
  const int64_t size = config_.hidden_size;
  for (int64_t n = rows.begin; n < rows.end; ++n)
    kernels_.rms_norm_bf16(buffers_.residual.data<float>() + n * size, floats(final_norm_),
                           epsilon(), size, bits(buffers_.hidden) + n * size);
}

/// Of a thread's own rows, which nobody writes before it has normalized them.
void CpuLlama::take_features(Features* features, int64_t layer, Range rows) {
  if (features == nullptr) return;
  const auto place = features->place_of(layer);
  if (!place) return;
  const int64_t size = config_.hidden_size, num_layers = std::ssize(features->layers);
  for (int64_t i = 0; i < std::ssize(features->rows); ++i) {
    const int64_t row = features->rows[static_cast<size_t>(i)];
    if (row < rows.begin || row >= rows.end) continue;
    std::copy_n(buffers_.residual.data<float>() + row * size, size,
                floats(features->values) + (i * num_layers + *place) * size);
  }
}

/// GEMMs split their outputs among the threads, norms their rows, attention its tiles: so every
/// step waits for the one before.
void CpuLlama::run_layer(size_t layer, int thread) {
  const PackedLayer& weights = layers_[layer];
  const auto pairs = [&](const TileWeight& weight) {
    return share(weight.view().num_pairs(), thread);
  };
  const AttentionLayer attention = attention_of(layer);
  float* residual = buffers_.residual.data<float>();
  const Range rows = share(num_rows_, thread);

  rms_norm(weights.attention_norm, rows);
  finish(ForwardStage::AttentionNorm, thread);
  project(weights, attention, thread);
  finish(ForwardStage::Qkv, thread);
  attend(attention, thread);
  finish(ForwardStage::Attention, thread);
  const void* attention_out =
      gemm_rows(buffers_.attention_out, config_.num_heads * config_.head_size, thread);
  kernels_.gemm_add(weights.output.view(), attention_out, num_rows_, pairs(weights.output),
                    residual, config_.hidden_size);
  finish(ForwardStage::Output, thread);
  rms_norm(weights.mlp_norm, rows);
  finish(ForwardStage::MlpNorm, thread);
  kernels_.gemm_swiglu(weights.gate_up.view(), normed_rows(), num_rows_, pairs(weights.gate_up),
                       buffers_.activated.data(), ceil_div(config_.mlp_size, kTileDepth));
  finish(ForwardStage::GateUp, thread);
  const void* activated = gemm_rows(buffers_.activated, config_.mlp_size, thread);
  kernels_.gemm_add(weights.down.view(), activated, num_rows_, pairs(weights.down), residual,
                    config_.hidden_size);
  finish(ForwardStage::Down, thread);
}

AttentionLayer CpuLlama::attention_of(size_t layer) const {
  const PackedLayer& weights = layers_[layer];
  const auto index = static_cast<int64_t>(layer);
  AttentionLayer attention = attention_;
  attention.keys = index * strides_.layer;
  attention.values = attention.keys + strides_.values;
  attention.window = config_.window(index);
  if (!config_.uses_rope(index)) attention.cos = attention.sin = nullptr;
  if (weights.qkv_bias.defined()) attention.qkv_bias = floats(weights.qkv_bias);
  if (weights.query_norm.defined()) {
    attention.query_norm = floats(weights.query_norm);
    attention.key_norm = floats(weights.key_norm);
  }
  return attention;
}

/// Queries, keys and values of normalized rows.
void CpuLlama::project(const PackedLayer& weights, const AttentionLayer& attention, int thread) {
  const TileWeightView qkv = weights.qkv.view();
  const Range pairs = share(qkv.num_pairs(), thread);
  if (attention.query_norm == nullptr) {
    kernels_.gemm_qkv(qkv, normed_rows(), num_rows_, pairs, attention);
    return;
  }
  float* heads = buffers_.heads.data<float>();
  kernels_.gemm(qkv, normed_rows(), num_rows_, pairs, heads, qkv.n);
  pool_->barrier();
  kernels_.rope_and_cache(attention, heads, num_rows_,
                          share(config_.num_heads + 2 * config_.num_kv_heads, thread));
}

void CpuLlama::embed(const ForwardPlan& plan, Range rows) {
  const int64_t size = config_.hidden_size;
  for (int64_t n = rows.begin; n < rows.end; ++n)
    kernels_.upcast(bits(embedding_) + plan.rows[static_cast<size_t>(n)].token * size, size,
                    buffers_.residual.data<float>() + n * size);
}

void CpuLlama::rms_norm(const at::Tensor& norm, Range rows) {
  const int64_t size = config_.hidden_size;
  for (int64_t n = rows.begin; n < rows.end; ++n)
    kernels_.rms_norm(buffers_.residual.data<float>() + n * size, floats(norm), epsilon(), size, n,
                      buffers_.normed.data());
  if (kernels_.quantize == nullptr) return;
  const int64_t depth = size / kTileDepth;
  kernels_.quantize(buffers_.normed.data(), depth, {rows.begin * depth, rows.end * depth},
                    buffers_.row_blocks.data());
}

/// What a GEMM reads of rows that were normalized.
const void* CpuLlama::normed_rows() const {
  return kernels_.quantize == nullptr ? buffers_.normed.data() : buffers_.row_blocks.data();
}

/// What a GEMM reads of other rows of k Elements, when all threads have come.
const void* CpuLlama::gemm_rows(const GrowingBuffer& rows, int64_t k, int thread) {
  if (kernels_.quantize == nullptr) return rows.data();
  const int64_t depth = ceil_div(k, kTileDepth);
  kernels_.quantize(rows.data(), depth, share(num_rows_ * depth, thread),
                    buffers_.row_blocks.data());
  pool_->barrier();
  return buffers_.row_blocks.data();
}

void CpuLlama::attend(const AttentionLayer& layer, int thread) {
  const AttentionScratch& scratch = scratch_[static_cast<size_t>(thread)].view();
  // Threads take turns, since in a long prompt later tiles see more.
  const auto step = static_cast<size_t>(pool_->num_running());
  for (size_t i = static_cast<size_t>(thread); i < plan_.tiles.size(); i += step)
    kernels_.attend(layer, plan_.tiles[i], scratch);
}

at::Tensor CpuLlama::logits(const at::Tensor& hidden) {
  check_shape(hidden, "hidden", {-1, config_.hidden_size});
  MEDUSA_ASSERT(hidden.scalar_type() == at::kBFloat16);
  const at::Tensor rows = hidden.contiguous();
  const int64_t num_rows = rows.size(0);
  tiled_hidden_.reserve(tiled_rows_size(num_rows, config_.hidden_size) * kernels_.element_bytes);
  if (!logits_.defined() || logits_.size(0) < num_rows)
    logits_ = at::empty({num_rows, config_.vocab_size}, at::kFloat);
  kernels_.pack_rows(bits(rows), num_rows, config_.hidden_size, tiled_hidden_.data());
  const void* from = tiled_hidden_.data();
  if (kernels_.quantize != nullptr) {
    const int64_t depth = config_.hidden_size / kTileDepth;
    hidden_blocks_.reserve(row_blocks_size(num_rows, depth));
    kernels_.quantize(from, depth, {0, num_rows * depth}, hidden_blocks_.data());
    from = hidden_blocks_.data();
  }
  pool_->run([&](int thread) {
    const KernelRegion region(kernels_);
    kernels_.gemm(lm_head_.view(), from, num_rows, share(lm_head_.view().num_pairs(), thread),
                  floats(logits_), config_.vocab_size);
  });
  return logits_.narrow(0, 0, num_rows);
}

std::array<int64_t, kNumForwardStages> CpuLlama::weight_bytes() const {
  std::array<int64_t, kNumForwardStages> bytes{};
  const auto add = [&bytes](ForwardStage stage, const TileWeight& weight) {
    bytes[static_cast<size_t>(stage)] += weight.num_bytes();
  };
  for (const PackedLayer& layer : layers_) {
    add(ForwardStage::Qkv, layer.qkv);
    add(ForwardStage::Output, layer.output);
    add(ForwardStage::GateUp, layer.gate_up);
    add(ForwardStage::Down, layer.down);
  }
  add(ForwardStage::LmHead, lm_head_);
  return bytes;
}

}  // namespace

bool cpu_llama_supports(const Weights& non_layer, CpuIsa isa) {
  const ModelConfig& c = non_layer.config;
  return non_layer.embedding.is_cpu() && non_layer.embedding.scalar_type() == at::kBFloat16 &&
         c.head_size % kPairOutputs == 0 && c.hidden_size % kTileDepth == 0 &&
         kernels_for(isa, non_layer.kind != QuantKind::None) != nullptr;
}

std::unique_ptr<LlamaBackend> make_cpu_llama(const Weights& non_layer, const CpuKernels& kernels,
                                             std::shared_ptr<ThreadPool> pool) {
  MEDUSA_ASSERT(cpu_llama_supports(non_layer, CpuIsa::Auto));
  return std::make_unique<CpuLlama>(non_layer, kernels, std::move(pool));
}

std::unique_ptr<LlamaBackend> make_cpu_llama(const Weights& non_layer,
                                             const ExecutionContext& execution) {
  return make_cpu_llama(non_layer, *kernels_for(execution.isa(), non_layer.kind != QuantKind::None),
                        execution.pool());
}

}  // namespace medusa
