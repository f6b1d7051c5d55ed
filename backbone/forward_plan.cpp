#include "backbone/forward_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "backbone/kv_cache.h"
#include "base/check.h"
#include "base/error.h"

namespace medusa {
namespace {

void append_segment(const Segment& segment, int64_t start, ForwardPlan& plan) {
  std::vector<BatchToken> rows;  // also those of earlier passes: paths lead through them
  for (size_t i = 0; i < segment.tokens.size(); ++i) {
    const int32_t parent =
        segment.parents.empty() ? static_cast<int32_t>(i) - 1 : segment.parents[i];
    MEDUSA_ASSERT(parent >= -1 && parent < static_cast<int32_t>(i), parent, i);

    BatchToken row{.token = segment.tokens[i], .slot = segment.slot, .start = start};
    row.cache_row = start + static_cast<int64_t>(i);
    row.path_begin = static_cast<int32_t>(plan.paths.size());
    if (parent >= 0) {
      const BatchToken& above = rows[static_cast<size_t>(parent)];
      for (int32_t at = above.path_begin; at < above.path_end; ++at)
        plan.paths.push_back(plan.paths[static_cast<size_t>(at)]);
    }
    plan.paths.push_back(row.cache_row);
    row.path_end = static_cast<int32_t>(plan.paths.size());

    const int64_t depth = row.path_end - row.path_begin - 1;
    row.position = start + depth;
    row.contiguous =
        row.cache_row == row.position;  // paths ascend: no gap before the last, none at all
    rows.push_back(row);
  }
  plan.rows.insert(plan.rows.end(), rows.begin() + segment.first, rows.end());
}

}  // namespace

ForwardPlan plan_forward(std::span<const Segment> segments, KvCache& cache) {
  ForwardPlan plan;
  std::vector<int32_t> slots;
  for (const Segment& segment : segments) {
    MEDUSA_ASSERT(segment.parents.empty() || segment.parents.size() == segment.tokens.size(),
                  segment.parents.size(), segment.tokens.size());
    MEDUSA_ASSERT(std::find(slots.begin(), slots.end(), segment.slot) == slots.end(), segment.slot);
    slots.push_back(segment.slot);
    MEDUSA_ASSERT(segment.first >= 0 && segment.first < static_cast<int32_t>(segment.tokens.size()),
                  segment.first, segment.tokens.size());
    const int64_t start = cache.length(segment.slot);
    const int64_t end = start + static_cast<int64_t>(segment.tokens.size());
    if (end > cache.capacity())
      throw UserError(fmt::format(
          "the sequence needs {} rows, expected at most {}; shorten the prompt or raise "
          "backbone.context",
          end, cache.capacity()));
    cache.make_room(segment.slot, end);
    append_segment(segment, start, plan);
  }
  return plan;
}

}  // namespace medusa
