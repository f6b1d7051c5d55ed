// Low-rank adapters (LoRA, arXiv:2106.09685): beside a frozen W [out, in] a product of two thin
// matrices is trained, W + scale · B A. A starts small and random, B at zero, so that nothing
// changes before the first step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backbone/weights.h"
#include "base/random.h"
#include "train/adamw.h"
#include "train/joint/joint_config.h"
#include "train/joint/llama_layer.h"

namespace medusa {

/// Adapter of some rows of a matrix: the query rows of qkv, say.
struct Adapter {
  std::string name;    // "layers.3.q_proj"
  int64_t begin = 0;   // first row of the matrix
  int64_t rows = 0;    // out
  at::Tensor a;        // [rank, in] float32 leaf
  at::Tensor b;        // [out, rank] float32 leaf
  uint64_t place = 0;  // addresses its random numbers
};

/// Thread safety: const calls may run at the same time.
class LoraAdapters {
 public:
  LoraAdapters(const LoraConfig& config, const Weights& model, uint64_t seed);

  /// The first layer with an adapter; num_layers if there is none.
  int64_t first_layer() const;
  bool on_lm_head() const { return !lm_head_.empty(); }

  /// Adds the adapters of a layer's matrix to its GEMM.
  /// @param y        [n, out] x · Wᵀ.
  /// @param x        [n, in]
  /// @param dropout  addresses what is left out of x (a GPU leaves out other numbers than the CPU);
  ///                 nothing: all of it is read.
  at::Tensor add_to(const at::Tensor& y, const at::Tensor& x, int64_t layer, LayerMatrix matrix,
                    const std::optional<Random>& dropout) const;

  /// W with its adapters, in W's dtype; autograd flows to the adapters.
  at::Tensor merged(const at::Tensor& matrix, int64_t layer, LayerMatrix which) const;
  at::Tensor merged_lm_head(const at::Tensor& lm_head) const;

  /// "layers.3.q_proj.a", …, "lm_head.b".
  NamedTensors named_parameters() const;

 private:
  using Slots = std::vector<Adapter>;  // of one matrix
  const Slots& slots(int64_t layer, LayerMatrix matrix) const;
  at::Tensor merge(const at::Tensor& matrix, const Slots& adapters) const;

  double scale_, dropout_;
  std::vector<std::array<Slots, 4>> layers_;  // by LayerMatrix
  Slots lm_head_;
};

}  // namespace medusa
