// Grouped-query attention of planned rows over the cache, in LibTorch's ops.
#pragma once

#include <ATen/core/Tensor.h>

#include "backbone/kv_cache.h"
#include "backbone/row_plan.h"

namespace medusa {

/// Writes the rows' keys and values to their places. Rows layout only.
/// @param keys, values  [N, G, D], any dtype; stored in the cache's.
void write_cache(const RowPlan& plan, int64_t layer, const at::Tensor& keys,
                 const at::Tensor& values, KvCache& cache);

/// One row at a time over its own path, moved together: the same sums in the same order as when the
/// path runs alone, so a row does not depend on the tree around it. The reference.
/// @param query   [N, A, D] float32.
/// @param window  how many tokens a row sees, its own and those before it; 0: all.
/// @returns       [N, A * D] float32.
at::Tensor path_attention(const RowPlan& plan, int64_t layer, const at::Tensor& query,
                          const KvCache& cache, int64_t window = 0);

/// One masked product per segment: fewer launches, for GPUs. Sums a scattered path in another order
/// than a straight one, so rows agree with path_attention within rounding, not bit for bit.
at::Tensor masked_attention(const RowPlan& plan, int64_t layer, const at::Tensor& query,
                            const KvCache& cache, int64_t window = 0);

}  // namespace medusa
