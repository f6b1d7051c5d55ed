#include "backbone/cpu/fused_llama.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "backbone/cpu/attention_plan.h"
#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/qkv_product.h"
#include "backbone/cpu/row_kernels.h"
#include "backbone/cpu/thread_team.h"
#include "backbone/cpu/tile_attention.h"
#include "backbone/cpu/tile_product.h"
#include "backbone/cpu/tile_state.h"
#include "backbone/cpu/tile_weight.h"
#include "backbone/rope.h"
#include "backbone/tensor_check.h"
#include "base/check.h"

namespace medusa {
namespace {

uint16_t* bits(const at::Tensor& bfloat16) { return static_cast<uint16_t*>(bfloat16.data_ptr()); }
float* floats(const at::Tensor& float32) { return static_cast<float*>(float32.data_ptr()); }

/// One layer's weights, packed.
struct PackedLayer {
  at::Tensor attention_norm, mlp_norm;  // [H] float32
  TileWeight qkv, output, gate_up, down;
};

/// A flat buffer that only grows. New memory is zero: what pads a tile stays zero for good.
void reserve(at::Tensor& buffer, int64_t numbers, at::ScalarType dtype) {
  if (!buffer.defined() || buffer.numel() < numbers) buffer = at::zeros({numbers}, dtype);
}

/// What rows pass from one product to the next; N rows each, "tiled" in tile order.
struct RowBuffers {
  int64_t max_rows = 0;
  at::Tensor residual;      // [N, H] float32
  at::Tensor normalised;    // tiled [N, H] bfloat16
  at::Tensor query;         // [G, N · A/G + 15, D] bfloat16
  at::Tensor fresh_values;  // [G, N, D] bfloat16
  at::Tensor mixed;         // tiled [N, A · D] bfloat16
  at::Tensor activated;     // tiled [N, I] bfloat16
  at::Tensor hidden;        // [N, H] bfloat16

  void grow(const ModelConfig& c, int64_t num_rows);
};

void RowBuffers::grow(const ModelConfig& c, int64_t num_rows) {
  if (num_rows <= max_rows) return;
  max_rows = ceil_div(num_rows, kTileRows) * kTileRows;
  const int64_t query_size = c.num_heads * c.head_size;
  reserve(residual, max_rows * c.hidden_size, at::kFloat);
  reserve(normalised, tiled_rows_size(max_rows, c.hidden_size), at::kBFloat16);
  reserve(query, max_rows * query_size + c.num_kv_heads * kTileRows * c.head_size, at::kBFloat16);
  reserve(fresh_values, c.num_kv_heads * max_rows * c.head_size, at::kBFloat16);
  reserve(mixed, tiled_rows_size(max_rows, query_size), at::kBFloat16);
  reserve(activated, tiled_rows_size(max_rows, c.mlp_size), at::kBFloat16);
  hidden = at::zeros({max_rows, c.hidden_size}, at::kBFloat16);
}

/// Owns what an AttentionScratch points to.
struct ScratchBuffers {
  at::Tensor scores, weights, path_values, sums;
  AttentionScratch view;

  void grow(int64_t head_size, int64_t capacity);
};

void ScratchBuffers::grow(int64_t head_size, int64_t capacity) {
  if (view.stride >= capacity) return;
  view.stride = capacity + 2 * kTileRows;  // rows not a multiple of 4 KB apart share no cache sets
  reserve(scores, kTileRows * view.stride, at::kFloat);
  reserve(weights, 2 * kTileRows * view.stride, at::kBFloat16);
  reserve(path_values, view.stride * head_size, at::kBFloat16);
  reserve(sums, 3 * kTileRows * head_size, at::kFloat);
  view.scores = floats(scores);
  view.weights = bits(weights);
  view.path_values = bits(path_values);
  view.sums = floats(sums);
}

}  // namespace

class FusedLlama::Impl {
 public:
  explicit Impl(const Weights& weights);

  at::Tensor forward(const RowPlan& plan, KvCache& cache);
  at::Tensor logits(const at::Tensor& hidden);
  void set_team(std::shared_ptr<ThreadTeam> team) { team_ = std::move(team); }

 private:
  void prepare(const RowPlan& plan, KvCache& cache);
  void run_pass(const RowPlan& plan, int thread);
  void embed(const RowPlan& plan, PairRange rows);
  void normalise(const at::Tensor& norm, PairRange rows);
  void attend_share(int64_t layer, int thread);
  PairRange pairs_of(const TileWeight& weight, int thread) const {
    return share_of(weight.view().num_pairs(), thread, team_->num_threads());
  }

  ModelConfig config_;
  std::shared_ptr<ThreadTeam> team_;
  at::Tensor embedding_, final_norm_;
  RopeTable rope_;
  std::vector<PackedLayer> layers_;
  TileWeight lm_head_;

  // The pass that runs.
  int64_t num_rows_ = 0, layer_size_ = 0;  // layer_size_: numbers of one layer's keys
  AttentionPlan plan_;
  QkvTarget target_;         // of layer 0
  AttentionPass attention_;  // of layer 0
  RowBuffers buffers_;
  std::vector<ScratchBuffers> scratch_;  // one per thread
  at::Tensor tiled_hidden_, logits_;
};

FusedLlama::Impl::Impl(const Weights& weights)
    : config_(weights.config),
      team_(shared_team()),
      embedding_(weights.embedding.contiguous()),
      final_norm_(weights.final_norm.contiguous()),
      rope_(make_rope_table(config_.context, config_.head_size, config_.rope_base, at::kCPU)),
      lm_head_(weights.lm_head) {
  const auto order_qkv =
      qkv_order(config_.num_heads + config_.num_kv_heads, config_.num_kv_heads, config_.head_size);
  const auto order_mlp = gate_up_order(config_.mlp_size);
  for (const LayerWeights& layer : weights.layers)
    layers_.push_back({layer.attention_norm.contiguous(), layer.mlp_norm.contiguous(),
                       TileWeight(layer.qkv, order_qkv), TileWeight(layer.output),
                       TileWeight(layer.gate_up, order_mlp), TileWeight(layer.down)});
}

void FusedLlama::Impl::prepare(const RowPlan& plan, KvCache& cache) {
  const ModelConfig& c = config_;
  const int64_t per_group = c.num_heads / c.num_kv_heads;
  num_rows_ = plan.size();
  plan_.assign(plan, c.num_kv_heads, per_group);
  buffers_.grow(c, num_rows_);
  scratch_.resize(static_cast<size_t>(team_->num_threads()));
  for (ScratchBuffers& scratch : scratch_) scratch.grow(c.head_size, cache.capacity());

  layer_size_ = cache.keys().stride(0);
  target_ = {.num_heads = c.num_heads, .num_kv_heads = c.num_kv_heads, .head_size = c.head_size};
  target_.rows = plan_.places.data();
  target_.cos = floats(rope_.cos);
  target_.sin = floats(rope_.sin);
  target_.query = bits(buffers_.query);
  target_.query_rows = buffers_.max_rows * per_group + kTileRows;
  target_.fresh_values = bits(buffers_.fresh_values);
  target_.fresh_rows = buffers_.max_rows;
  target_.keys = bits(cache.keys());
  target_.values = bits(cache.values());
  target_.capacity = cache.capacity();

  attention_ = {
      .num_kv_heads = c.num_kv_heads, .heads_per_group = per_group, .head_size = c.head_size};
  attention_.rows = plan_.rows.data();
  attention_.query = target_.query;
  attention_.query_rows = target_.query_rows;
  attention_.fresh_values = target_.fresh_values;
  attention_.fresh_rows = target_.fresh_rows;
  attention_.keys = target_.keys;
  attention_.values = target_.values;
  attention_.capacity = target_.capacity;
  attention_.out = bits(buffers_.mixed);
  attention_.out_depth = ceil_div(c.num_heads * c.head_size, kTileDepth);
}

at::Tensor FusedLlama::Impl::forward(const RowPlan& plan, KvCache& cache) {
  MEDUSA_ASSERT(cache.layout() == KvLayout::Tiles && plan.size() > 0, plan.size());
  MEDUSA_ASSERT(cache.keys().size(2) == config_.num_kv_heads &&
                cache.keys().size(4) == config_.head_size);
  prepare(plan, cache);
  team_->run([&](int thread) { run_pass(plan, thread); });
  return buffers_.hidden.narrow(0, 0, num_rows_);
}

void FusedLlama::Impl::run_pass(const RowPlan& plan, int thread) {
  const TileState tiles;
  const PairRange rows = share_of(num_rows_, thread, team_->num_threads());
  float* residual = floats(buffers_.residual);
  uint16_t* normalised = bits(buffers_.normalised);
  uint16_t* activated = bits(buffers_.activated);
  const int64_t hidden = config_.hidden_size;

  // Products split their outputs among the threads, everything else its rows; so each step waits
  // for the one before.
  embed(plan, rows);
  for (int64_t l = 0; l < config_.num_layers; ++l) {
    const PackedLayer& layer = layers_[static_cast<size_t>(l)];
    normalise(layer.attention_norm, rows);
    team_->barrier();
    QkvTarget target = target_;
    target.keys += l * layer_size_;
    target.values += l * layer_size_;
    product_qkv(layer.qkv.view(), normalised, num_rows_, pairs_of(layer.qkv, thread), target);
    team_->barrier();
    attend_share(l, thread);
    team_->barrier();
    product_add(layer.output.view(), attention_.out, num_rows_, pairs_of(layer.output, thread),
                residual, hidden);
    team_->barrier();
    normalise(layer.mlp_norm, rows);
    team_->barrier();
    product_swiglu(layer.gate_up.view(), normalised, num_rows_, pairs_of(layer.gate_up, thread),
                   activated, ceil_div(config_.mlp_size, kTileDepth));
    team_->barrier();
    product_add(layer.down.view(), activated, num_rows_, pairs_of(layer.down, thread), residual,
                hidden);
    team_->barrier();
  }
  for (int64_t n = rows.begin; n < rows.end; ++n)
    normalise_row(residual + n * hidden, floats(final_norm_),
                  static_cast<float>(config_.norm_epsilon), hidden,
                  bits(buffers_.hidden) + n * hidden, kTileDepth);
}

void FusedLlama::Impl::embed(const RowPlan& plan, PairRange rows) {
  for (int64_t n = rows.begin; n < rows.end; ++n)
    widen_row(bits(embedding_) + plan.rows[static_cast<size_t>(n)].token * config_.hidden_size,
              config_.hidden_size, floats(buffers_.residual) + n * config_.hidden_size);
}

void FusedLlama::Impl::normalise(const at::Tensor& norm, PairRange rows) {
  const int64_t hidden = config_.hidden_size, depth = hidden / kTileDepth;
  for (int64_t n = rows.begin; n < rows.end; ++n)
    normalise_row(floats(buffers_.residual) + n * hidden, floats(norm),
                  static_cast<float>(config_.norm_epsilon), hidden,
                  bits(buffers_.normalised) + tiled_index(n, 0, depth), kTileNumbers);
}

void FusedLlama::Impl::attend_share(int64_t layer, int thread) {
  AttentionPass pass = attention_;
  pass.keys += layer * layer_size_;
  pass.values += layer * layer_size_;
  const auto scratch = scratch_[static_cast<size_t>(thread)].view;
  // Taking turns, since in a long prompt later tiles see more.
  const auto step = static_cast<size_t>(team_->num_threads());
  for (size_t i = static_cast<size_t>(thread); i < plan_.tiles.size(); i += step)
    attend(pass, plan_.tiles[i], scratch);
}

at::Tensor FusedLlama::Impl::logits(const at::Tensor& hidden) {
  check_shape(hidden, "hidden", {-1, config_.hidden_size});
  MEDUSA_ASSERT(hidden.scalar_type() == at::kBFloat16 && hidden.is_contiguous());
  const int64_t num_rows = hidden.size(0);
  reserve(tiled_hidden_, tiled_rows_size(num_rows, config_.hidden_size), at::kBFloat16);
  if (!logits_.defined() || logits_.size(0) < num_rows)
    logits_ = at::empty({num_rows, config_.vocab_size}, at::kFloat);
  tile_rows(bits(hidden), num_rows, config_.hidden_size, bits(tiled_hidden_));
  team_->run([&](int thread) {
    const TileState tiles;
    product_store(lm_head_.view(), bits(tiled_hidden_), num_rows, pairs_of(lm_head_, thread),
                  floats(logits_), config_.vocab_size);
  });
  return logits_.narrow(0, 0, num_rows);
}

bool FusedLlama::supports(const Weights& weights) {
  const ModelConfig& c = weights.config;
  return weights.embedding.is_cpu() && weights.embedding.scalar_type() == at::kBFloat16 &&
         c.head_size % kPairOutputs == 0 && c.hidden_size % kTileDepth == 0 && has_tile_kernels();
}

FusedLlama::FusedLlama(const Weights& weights) : impl_(std::make_unique<Impl>(weights)) {
  MEDUSA_ASSERT(supports(weights));
}
FusedLlama::~FusedLlama() = default;

at::Tensor FusedLlama::forward(const RowPlan& plan, KvCache& cache) {
  return impl_->forward(plan, cache);
}
at::Tensor FusedLlama::logits(const at::Tensor& hidden) { return impl_->logits(hidden); }
void FusedLlama::set_threads(int num_threads) {
  impl_->set_team(std::make_shared<ThreadTeam>(num_threads));
}

}  // namespace medusa
