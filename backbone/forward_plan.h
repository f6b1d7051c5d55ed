// Which rows run in one pass of the backbone, and what each of them sees: parent indices ->
// ancestor paths and positions. The causal mask of a prompt is the case where every token's parent
// is its predecessor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token.h"

namespace medusa {

/// Tokens of one sequence that run together, as a tree over the sequence's committed rows.
struct Segment {
  int32_t slot = 0;                 // of the KvCache
  std::span<const TokenId> tokens;  // [n]
  std::span<const int32_t>
      parents;        // [n], parents[i] < i; -1: the last committed row. Empty: a chain.
  int32_t first = 0;  // tokens before it ran in earlier passes and are still tentative rows: a tree
                      // that grows. Below n
};

/// One row (token) of a pass.
struct BatchToken {
  TokenId token = 0;
  int32_t slot = 0;
  int64_t start = 0;  // committed rows of the slot before this pass: the row sees slots [0, start)
  int64_t cache_row = 0;   // where its own key and value are written: start + index in its segment
  int64_t position = 0;    // start + depth, for the rotary embedding
  bool contiguous = true;  // its path lies at cache rows start, start + 1, …, without gaps
  int32_t path_begin = 0, path_end = 0;  // into ForwardPlan::paths
};

/// The pass, flattened. A row's path holds the cache rows of its ancestors inside the pass and of
/// itself, root first; they ascend.
struct ForwardPlan {
  std::vector<BatchToken> rows;  // [N]
  std::vector<int64_t> paths;

  int64_t size() const { return static_cast<int64_t>(rows.size()); }
  std::span<const int64_t> path(const BatchToken& row) const {
    return {paths.data() + row.path_begin, paths.data() + row.path_end};
  }
};

class KvCache;

/// Makes room for the rows in the cache, too.
/// @throws std::logic_error  a parent is not before its child; a slot was opened for fewer rows.
/// @throws UserError         a segment does not fit in the cache.
ForwardPlan plan_forward(std::span<const Segment> segments, KvCache& cache);

}  // namespace medusa
