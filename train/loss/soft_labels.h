// The backbone's own next-token distribution as a label: what it held likely, not only what it
// happened to sample. It costs one GEMM per position, since the state behind every token is
// there already, and it teaches more: on SmolLM2-135M and 211,000 positions head 0 is right .399 of
// the time instead of .380 (docs/benchmarks/2026-11-22-heads.md). Distillation after Hinton et al.
// (arXiv:1503.02531).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace medusa {

/// The M most probable output rows of each of m states, and how they share the probability among
/// them. What is less likely than these is left out: the loss then needs M numbers per position
/// instead of V.
struct SoftLabels {
  int64_t size = 0;           // M
  std::vector<int32_t> rows;  // [m, M] the most probable first
  std::vector<float> probs;   // [m, M], a state's together 1

  std::span<const int32_t> rows_of(int64_t state) const;
  std::span<const float> probs_of(int64_t state) const;
};

/// @param hidden  [m, H] on any device.
/// @param output  [V_t, H] rows of the backbone's LM head that the heads can draft; compute dtype.
/// @param size    M, at most V_t.
/// @param chunk   states whose logits exist at one time.
SoftLabels make_soft_labels(const at::Tensor& hidden, const at::Tensor& output, int64_t size,
                            int64_t chunk);

}  // namespace medusa
