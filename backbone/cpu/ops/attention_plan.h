// A ForwardPlan as the kernels read it.
#pragma once

#include <cstdint>
#include <vector>

#include "backbone/cpu/ops/attention_types.h"
#include "backbone/forward_plan.h"
#include "backbone/kv_cache.h"

namespace medusa {

/// Reused from pass to pass, so that a pass allocates nothing once the largest was seen.
struct AttentionPlan {
  std::vector<AttentionRow> rows;    // [N]; their paths point into the ForwardPlan
  std::vector<AttentionTile> tiles;  // every query of the pass is in one of them

  /// Tiles that do not go round the threads that take turns with them are split among these.
  /// @param plan   outlives the use of `rows`.
  /// @param cache  in KvLayout::Tiles; the same.
  void assign(const ForwardPlan& plan, const KvCache& cache, int64_t num_kv_heads,
              int64_t heads_per_group, int num_threads);
};

}  // namespace medusa
