#include "backbone/reference_llama.h"

#include <ATen/ATen.h>

#include <numeric>
#include <vector>

#include "backbone/attention.h"
#include "backbone/linear.h"
#include "backbone/reference_layer.h"
#include "backbone/rope.h"

namespace medusa {
namespace {

at::Tensor to_device(const std::vector<int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device);
}

class ReferenceLlama : public LlamaBackend {
 public:
  ReferenceLlama(const Weights& non_layer, const ExecutionContext& execution)
      : non_layer_(non_layer),
        execution_(execution),
        rope_(make_rope_table(non_layer.config, device())) {
    non_layer_.layers.clear();
    if (non_layer.lm_head.defined())
      lm_head_ = linear(non_layer.lm_head, non_layer.lm_head_quantized);
  }

  void add_layer(const LayerWeights& layer) override {
    const LayerQuantized& blocks = layer.blocks;
    linears_.push_back({linear(layer.qkv, blocks.qkv), linear(layer.output, blocks.output),
                        linear(layer.gate_up, blocks.gate_up), linear(layer.down, blocks.down)});
    layers_.push_back(layer);
  }

  at::Tensor forward(const ForwardPlan& plan, KvCache& cache, std::span<const int32_t> layers,
                     Features* features) override {
    std::vector<int64_t> tokens;
    for (const BatchToken& row : plan.rows) tokens.push_back(row.token);
    const at::Tensor x =
        non_layer_.embedding.index_select(0, to_device(tokens, device())).to(at::kFloat);  // [N, H]
    record(ForwardStage::Embedding);
    at::Tensor hidden = rms_norm(run(plan, x, cache, layers, features), non_layer_.final_norm,
                                 non_layer_.config.norm_epsilon)
                            .to(dtype());
    record(ForwardStage::FinalNorm);
    return hidden;
  }

  at::Tensor run_layers(const ForwardPlan& plan, const at::Tensor& x, KvCache& cache) override {
    std::vector<int32_t> all(layers_.size());
    std::iota(all.begin(), all.end(), 0);
    return run(plan, x, cache, all, nullptr);
  }

  at::Tensor logits(const at::Tensor& hidden) override {
    return lm_head_(hidden.to(matmul_dtype()));
  }

  bool rows_are_independent() const override { return false; }  // LibTorch's GEMMs promise nothing

  /// Blocks would be copied together in every layer, which a GPU takes longer for than for the
  /// rest.
  bool reads_whole_slots() const override { return !device().is_cpu(); }

  void set_timer(StageTimer* timer) override { timer_ = timer; }

  std::array<int64_t, kNumForwardStages> weight_bytes() const override {
    std::array<int64_t, kNumForwardStages> bytes{};
    const auto add = [&bytes](ForwardStage stage, const at::Tensor& weight,
                              const QuantizedMatrix& blocks) {
      for (const at::Tensor* each : {&weight, &blocks.quants, &blocks.scales, &blocks.mins})
        if (each->defined())
          bytes[static_cast<size_t>(stage)] += static_cast<int64_t>(each->nbytes());
    };
    for (const LayerWeights& layer : layers_) {
      add(ForwardStage::Qkv, layer.qkv, layer.blocks.qkv);
      add(ForwardStage::Output, layer.output, layer.blocks.output);
      add(ForwardStage::GateUp, layer.gate_up, layer.blocks.gate_up);
      add(ForwardStage::Down, layer.down, layer.blocks.down);
    }
    // Beside blocks the plain ones are the embedding's.
    add(ForwardStage::LmHead, quantized() ? at::Tensor() : non_layer_.lm_head,
        non_layer_.lm_head_quantized);
    return bytes;
  }

  const char* name() const override { return "LibTorch"; }

 private:
  /// Of one layer, by LayerMatrix.
  using Linears = std::array<Linear, 4>;

  at::Device device() const { return non_layer_.embedding.device(); }
  at::ScalarType dtype() const { return non_layer_.embedding.scalar_type(); }
  bool quantized() const { return non_layer_.kind != QuantKind::None; }

  /// Of the rows that enter GEMMs: those of quantized weights are rounded there, not before.
  at::ScalarType matmul_dtype() const { return quantized() ? at::kFloat : dtype(); }

  Linear linear(const at::Tensor& weight, const QuantizedMatrix& blocks) const {
    return quantized() ? Linear(blocks, execution_) : Linear(weight, execution_);
  }

  /// @param x  [N, H] float32: the residual stream, which is float32 in every dtype.
  at::Tensor run(const ForwardPlan& plan, at::Tensor x, KvCache& cache,
                 std::span<const int32_t> layers, Features* features) {
    std::vector<int64_t> positions;
    for (const BatchToken& row : plan.rows) positions.push_back(row.position);
    const at::Tensor at_position = to_device(positions, device());
    AttentionMasks masks(plan, device());
    for (const int32_t l : layers) {
      if (features != nullptr) features->take(l, x);
      const Linears& linears = linears_[static_cast<size_t>(l)];
      const LayerMatmul matmul = [&](const at::Tensor& rows, LayerMatrix matrix) {
        return linears[static_cast<size_t>(matrix)](rows.to(matmul_dtype()));
      };
      const LayerAttention attention = [&](const at::Tensor& query, const at::Tensor& key,
                                           const at::Tensor& value) {
        return attend(plan, l, query, key, value, cache, masks);
      };
      x = run_layer({non_layer_.config, l, rope_, at_position, matmul, timer_},
                    layers_[static_cast<size_t>(l)], attention, x);
    }
    if (features != nullptr) features->take(std::ssize(layers_), x);
    return x;
  }

  at::Tensor attend(const ForwardPlan& plan, int64_t layer, const at::Tensor& query,
                    const at::Tensor& key, const at::Tensor& value, KvCache& cache,
                    AttentionMasks& masks) {
    write_cache(plan, layer, key, value, cache);
    record(ForwardStage::CacheWrite);
    const at::Tensor rounded = query.to(dtype()).to(at::kFloat);  // as precise as the keys it meets
    const int64_t window = non_layer_.config.window(layer);
    return device().is_cpu() ? path_attention(plan, layer, rounded, cache, window)
                             : masked_attention(plan, layer, rounded, cache, masks, window);
  }

  void record(ForwardStage stage) {
    if (timer_ != nullptr) timer_->record(stage);
  }

  Weights non_layer_;
  ExecutionContext execution_;
  RopeTable rope_;
  std::vector<LayerWeights> layers_;
  std::vector<Linears> linears_;
  Linear lm_head_;
  StageTimer* timer_ = nullptr;  // not owned
};

}  // namespace

std::unique_ptr<LlamaBackend> make_reference_llama(const Weights& non_layer,
                                                   const ExecutionContext& execution) {
  return std::make_unique<ReferenceLlama>(non_layer, execution);
}

}  // namespace medusa
