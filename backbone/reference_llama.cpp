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
  ReferenceLlama(const Weights& ends, const ExecutionContext& execution)
      : ends_(ends), execution_(execution), rope_(make_rope_table(ends.config, device())) {
    ends_.layers.clear();
    if (ends.lm_head.defined()) lm_head_ = linear(ends.lm_head, ends.lm_head_blocks);
  }

  void add_layer(const LayerWeights& layer) override {
    const LayerBlocks& blocks = layer.blocks;
    products_.push_back({linear(layer.qkv, blocks.qkv), linear(layer.output, blocks.output),
                         linear(layer.gate_up, blocks.gate_up), linear(layer.down, blocks.down)});
    layers_.push_back(layer);
  }

  at::Tensor forward(const RowPlan& plan, KvCache& cache,
                     std::span<const int32_t> layers) override {
    std::vector<int64_t> tokens;
    for (const PlannedRow& row : plan.rows) tokens.push_back(row.token);
    const at::Tensor x =
        ends_.embedding.index_select(0, to_device(tokens, device())).to(at::kFloat);  // [N, H]
    lap(PassPart::Embedding);
    at::Tensor hidden =
        rms_norm(run(plan, x, cache, layers), ends_.final_norm, ends_.config.norm_epsilon)
            .to(dtype());
    lap(PassPart::FinalNorm);
    return hidden;
  }

  at::Tensor run_layers(const RowPlan& plan, const at::Tensor& x, KvCache& cache) override {
    std::vector<int32_t> all(layers_.size());
    std::iota(all.begin(), all.end(), 0);
    return run(plan, x, cache, all);
  }

  at::Tensor logits(const at::Tensor& hidden) override {
    return lm_head_(hidden.to(product_dtype()));
  }

  bool rows_are_independent() const override { return false; }  // LibTorch's GEMMs promise nothing

  /// Blocks would be copied together in every layer, which a GPU takes longer for than for the
  /// rest.
  bool reads_whole_slots() const override { return !device().is_cpu(); }

  void set_clock(PartClock* clock) override { clock_ = clock; }

  std::array<int64_t, kNumPassParts> weight_bytes() const override {
    std::array<int64_t, kNumPassParts> bytes{};
    const auto add = [&bytes](PassPart part, const at::Tensor& weight, const BlockMatrix& blocks) {
      for (const at::Tensor* each : {&weight, &blocks.levels, &blocks.scales, &blocks.offsets})
        if (each->defined())
          bytes[static_cast<size_t>(part)] += static_cast<int64_t>(each->nbytes());
    };
    for (const LayerWeights& layer : layers_) {
      add(PassPart::Qkv, layer.qkv, layer.blocks.qkv);
      add(PassPart::Output, layer.output, layer.blocks.output);
      add(PassPart::GateUp, layer.gate_up, layer.blocks.gate_up);
      add(PassPart::Down, layer.down, layer.blocks.down);
    }
    // Beside blocks the plain ones are the embedding's.
    add(PassPart::LmHead, in_blocks() ? at::Tensor() : ends_.lm_head, ends_.lm_head_blocks);
    return bytes;
  }

  const char* name() const override { return "LibTorch"; }

 private:
  /// Of one layer, by LayerMatrix.
  using Products = std::array<Linear, 4>;

  at::Device device() const { return ends_.embedding.device(); }
  at::ScalarType dtype() const { return ends_.embedding.scalar_type(); }
  bool in_blocks() const { return ends_.kind != BlockKind::None; }

  /// Of the rows that enter products: those of block weights are rounded there, not before.
  at::ScalarType product_dtype() const { return in_blocks() ? at::kFloat : dtype(); }

  Linear linear(const at::Tensor& weight, const BlockMatrix& blocks) const {
    return in_blocks() ? Linear(blocks) : Linear(weight, execution_);
  }

  /// @param x  [N, H] float32: the residual stream, which is float32 in every dtype.
  at::Tensor run(const RowPlan& plan, at::Tensor x, KvCache& cache,
                 std::span<const int32_t> layers) {
    std::vector<int64_t> positions;
    for (const PlannedRow& row : plan.rows) positions.push_back(row.position);
    const at::Tensor at_position = to_device(positions, device());
    AttentionMasks masks(plan, device());
    for (const int32_t l : layers) {
      const Products& products = products_[static_cast<size_t>(l)];
      const LayerProduct product = [&](const at::Tensor& rows, LayerMatrix matrix) {
        return products[static_cast<size_t>(matrix)](rows.to(product_dtype()));
      };
      const LayerAttention attention = [&](const at::Tensor& query, const at::Tensor& key,
                                           const at::Tensor& value) {
        return attend(plan, l, query, key, value, cache, masks);
      };
      x = run_layer({ends_.config, l, rope_, at_position, product, clock_},
                    layers_[static_cast<size_t>(l)], attention, x);
    }
    return x;
  }

  at::Tensor attend(const RowPlan& plan, int64_t layer, const at::Tensor& query,
                    const at::Tensor& key, const at::Tensor& value, KvCache& cache,
                    AttentionMasks& masks) {
    write_cache(plan, layer, key, value, cache);
    lap(PassPart::CacheWrite);
    const at::Tensor rounded = query.to(dtype()).to(at::kFloat);  // as precise as the keys it meets
    const int64_t window = ends_.config.window(layer);
    return device().is_cpu() ? path_attention(plan, layer, rounded, cache, window)
                             : masked_attention(plan, layer, rounded, cache, masks, window);
  }

  void lap(PassPart part) {
    if (clock_ != nullptr) clock_->lap(part);
  }

  Weights ends_;
  ExecutionContext execution_;
  RopeTable rope_;
  std::vector<LayerWeights> layers_;
  std::vector<Products> products_;
  Linear lm_head_;
  PartClock* clock_ = nullptr;  // not owned
};

}  // namespace

std::unique_ptr<LlamaBackend> make_reference_llama(const Weights& ends,
                                                   const ExecutionContext& execution) {
  return std::make_unique<ReferenceLlama>(ends, execution);
}

}  // namespace medusa
