// The heads on a CPU, with weights in bfloat16 or, beside a backbone in blocks, in blocks: one
// parallel region per guess, the small steps between products fused into them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "backbone/execution_context.h"
#include "heads/head_guesses.h"
#include "heads/head_query.h"
#include "heads/medusa_heads.h"

namespace medusa {

struct CpuKernels;

/// The fast twin of PlainHeads: the same numbers but for the order of sums, and rounded in the same
/// places. Positions that share state and root share what the first layer makes of them. A
/// position's guesses of one head are the same bits whatever positions and heads are computed
/// beside it and for any number of threads; not the same on another kind of processor.
///
/// Thread safety: none (scratch buffers).
class FusedHeads {
 public:
  /// Whether this dtype and hidden size are the ones that it is written for, bfloat16 on the CPU
  /// and a multiple of 32, and this machine runs the ISA.
  static bool supports(const Weights& backbone, CpuIsa isa);

  /// Packs the products' weights; of the backbone it keeps the embedding (not a copy).
  /// @param top_k  1 to V_t.
  FusedHeads(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
             const ExecutionContext& execution);
  /// @param kernels  for weights as the backbone keeps its own; live as long as this.
  FusedHeads(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
             const CpuKernels& kernels, std::shared_ptr<ThreadPool> pool);
  ~FusedHeads();

  /// As HeadGuesser::guess(). Allocates nothing once the largest number of positions was seen.
  void guess(const HeadQuery& query, HeadGuesses& guesses);

  const char* name() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace medusa
