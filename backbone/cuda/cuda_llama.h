// The whole forward pass of a Llama on a GPU, in our own kernels: static buffers, nothing that
// waits for the host, so that a CUDA graph may capture it.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backbone/cuda/device_gemm.h"
#include "backbone/cuda/device_pass.h"
#include "backbone/cuda/gemm_kernels.h"
#include "backbone/cuda/graph_cache.h"
#include "backbone/cuda/layer_kernels.h"
#include "backbone/llama_backend.h"
#include "backbone/rope.h"

namespace medusa {

/// Which kernels compute. Those of the tests are emulated and take tensors on the CPU.
struct DeviceKernels {
  const LayerKernels* layers = nullptr;
  const GemmKernels* gemms = nullptr;
  DeviceRuntime* runtime = nullptr;  // that captures forward(); null: it starts each kernel

  bool complete() const { return layers != nullptr && gemms != nullptr; }
};

/// Those of this build; not complete where it was made without a CUDA compiler.
inline DeviceKernels cuda_kernels() {
  return {cuda_layer_kernels(), cuda_gemm_kernels(), cuda_runtime()};
}

/// A pass that was captured: whatever its rows are and wherever they stand, its kernels are these.
struct CapturedPass {
  int32_t num_rows = 0, num_tiles = 0;
  int64_t max_context = 0;      // positions up to this
  std::vector<int32_t> layers;  // that run
  DeviceCache cache;            // another one may lie in the place of one that is gone

  auto operator<=>(const CapturedPass&) const = default;
};

/// Keys, values and weights are bfloat16; sums and the residual stream float32.
///
/// Thread safety: none (scratch buffers).
class CudaLlama : public LlamaBackend {
 public:
  /// Whether this dtype and these sizes are the ones that the kernels are written for.
  static bool supports(const Weights& weights, const DeviceKernels& kernels);

  /// Shares the tensors of `weights`; layers are added one by one before the first pass.
  CudaLlama(const Weights& weights, const DeviceKernels& kernels);

  void add_layer(const LayerWeights& layer) override;
  at::Tensor forward(const ForwardPlan& plan, KvCache& cache, std::span<const int32_t> layers,
                     Features* features) override;
  at::Tensor run_layers(const ForwardPlan& plan, const at::Tensor& x, KvCache& cache) override;
  at::Tensor logits(const at::Tensor& hidden) override;
  int64_t rows_behind() const override { return kRowsBehind; }
  bool reads_whole_slots() const override { return true; }
  void set_timer(StageTimer* timer) override { timer_ = timer; }
  std::array<int64_t, kNumForwardStages> weight_bytes() const override;
  const char* name() const override { return kernels_.layers->name; }

  /// Whether forward() captures passes of few rows, so that the host starts one graph instead of
  /// some hundred kernels. It does unless it is told.
  void use_graphs(bool wanted) { uses_graphs_ = wanted; }

  /// Lists the passes of forward() that were captured, in order.
  std::vector<CapturedPass> captured() const;

  /// Makes room for passes of so many rows, none at a later position; later calls of run() and
  /// run_logits() within that allocate nothing.
  void reserve(int64_t num_rows, int64_t max_context);
  void reserve_logits(int64_t num_rows);

  /// Embedding, all layers and LM head, started on a stream.
  /// @returns  [R, H] the buffer that will hold the states; the next call writes over it.
  const Bf16* run(const DevicePass& pass, const DeviceCache& cache, DeviceStream stream);

  /// @param hidden  [num_rows, H] on the device.
  /// @returns       [num_rows, V] the buffer that will hold them.
  const float* run_logits(const Bf16* hidden, int64_t num_rows, DeviceStream stream);

  /// Grows whenever buffers moved: what was captured before must not be replayed.
  int64_t generation() const { return generation_; }

  /// A decoding loop that runs ahead of the host computes rows behind a text's end; caches and the
  /// rotary table have room for so many behind the model's context.
  static constexpr int64_t kRowsBehind = 256;

  const DeviceKernels& kernels() const { return kernels_; }
  const ModelConfig& config() const { return config_; }

  /// Attention's.
  int32_t tile_rows() const;

 private:
  struct Layer {
    at::Tensor attention_norm, mlp_norm, qkv_bias, query_norm, key_norm;
    DeviceGemm qkv, output, gate_up, down;
  };

  bool captures(const ForwardPlan& plan, const Features* features) const;
  void forward_captured(const ForwardPlan& plan, const KvCache& cache,
                        std::span<const int32_t> layers);
  void run_pass(const DevicePass& pass, const DeviceCache& cache, std::span<const int32_t> layers,
                Features* features, DeviceStream stream);
  void run_layers(const DevicePass& pass, const DeviceCache& cache, std::span<const int32_t> layers,
                  Features* features, DeviceStream stream);
  /// From normed rows to the residual stream with what the layer adds.
  /// @param norm_weight  of the norm that is begun behind it; null: none.
  void run_layer(int64_t index, const DevicePass& pass, const DeviceCache& cache,
                 const at::Tensor* norm_weight, DeviceStream stream);
  DeviceGemm gemm(const at::Tensor& weight, const QuantizedMatrix& blocks);
  /// normed = RMSNorm(x). @param folded  but for the division, which the GEMM behind does.
  void norm(const at::Tensor& weight, bool folded, int64_t num_rows, DeviceStream stream);
  /// The normed rows as a GEMM reads them.
  NormedRows normed_rows() const;
  /// What a GEMM leaves for the norm behind it; nothing where norms have kernels of their own.
  NormBehind norm_behind(const at::Tensor& weight);
  void record(ForwardStage stage) {
    if (timer_ != nullptr) timer_->record(stage);
  }

  ModelConfig config_;
  DeviceKernels kernels_;
  StageTimer* timer_ = nullptr;  // not owned
  at::Tensor embedding_, final_norm_;
  std::vector<Layer> layers_;
  std::vector<int32_t> all_layers_;
  DeviceGemm lm_head_;
  RopeTable rope_;
  int64_t num_squares_;  // of a row; 0: norms are kernels of their own
  bool uses_graphs_ = true;
  std::optional<PlacedPlan> placed_;  // nothing: no runtime captures
  std::optional<GraphCache<CapturedPass>> graphs_;

  // Of the largest pass so far, R rows.
  int64_t rows_ = 0, context_ = 0, generation_ = 0;
  at::Tensor x_;              // [R, H] float32, the residual stream
  at::Tensor wide_;           // [R, max((A + 2G) D, 2I)] float32
  at::Tensor normed_;         // [R, H] bfloat16
  at::Tensor squares_;        // [R, num_squares] float32
  at::Tensor query_;          // [R, A D] bfloat16
  at::Tensor attention_out_;  // [R, A D] bfloat16
  at::Tensor activated_;      // [R, I] bfloat16
  at::Tensor scratch_;        // float32, attention's
  at::Tensor arrived_;        // [R, G] int32, attention's
  at::Tensor sums_;           // float32, scratch of the GEMMs
  at::Tensor logits_;         // [R', V] float32
};

/// The passes on a GPU's kernels, for a decoding loop that starts them itself; null where another
/// backend computes.
inline CudaLlama* as_cuda(LlamaBackend& backend) { return dynamic_cast<CudaLlama*>(&backend); }

}  // namespace medusa
