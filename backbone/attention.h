// Grouped-query attention of planned rows over the cache, in LibTorch's ops.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "backbone/forward_plan.h"
#include "backbone/kv_cache.h"

namespace medusa {

/// Writes the rows' keys and values to their places. Rows layout only.
/// @param keys, values  [N, G, D], any dtype; stored in the cache's.
void write_cache(const ForwardPlan& plan, int64_t layer, const at::Tensor& keys,
                 const at::Tensor& values, KvCache& cache);

/// One row at a time over its own path, moved together: the same sums in the same order as when the
/// path runs alone, so a row does not depend on the tree around it. The reference.
/// @param query   [N, A, D] float32.
/// @param window  how many tokens a row sees, its own and those before it; 0: all.
/// @returns       [N, A * D] float32.
at::Tensor path_attention(const ForwardPlan& plan, int64_t layer, const at::Tensor& query,
                          const KvCache& cache, int64_t window = 0);

/// What the rows of one pass do not see, as numbers that masked_attention() adds. Its layers share
/// them: to copy one to a GPU is to wait for all that the GPU was asked to do before.
class AttentionMasks {
 public:
  /// @param plan  kept by reference.
  AttentionMasks(const ForwardPlan& plan, at::Device device) : plan_(plan), device_(device) {}

  /// For each slot of the plan [n, T - from]: its n rows, and its cache rows from the first that
  /// one of these does not see.
  const std::vector<at::Tensor>& of(int64_t window);

 private:
  const ForwardPlan& plan_;
  at::Device device_;
  std::map<int64_t, std::vector<at::Tensor>> by_window_;
};

/// One masked GEMM per slot: fewer launches, for GPUs. Sums a scattered path in another order
/// than a contiguous one, so rows agree with path_attention within rounding, not bit for bit.
/// @param masks  of this plan.
at::Tensor masked_attention(const ForwardPlan& plan, int64_t layer, const at::Tensor& query,
                            const KvCache& cache, AttentionMasks& masks, int64_t window = 0);

}  // namespace medusa
