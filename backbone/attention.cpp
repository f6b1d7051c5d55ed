#include "backbone/attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace medusa {
namespace {

/// Rows [begin, end) of a plan that belong to one slot; their cache rows follow each other.
struct Run {
  int64_t begin = 0, end = 0;
};

std::vector<Run> runs_of(const ForwardPlan& plan) {
  std::vector<Run> runs;
  for (int64_t i = 0; i < plan.size(); ++i) {
    const auto& row = plan.rows[static_cast<size_t>(i)];
    if (i == 0 || plan.rows[static_cast<size_t>(i) - 1].slot != row.slot) runs.push_back({i, i});
    runs.back().end = i + 1;
  }
  return runs;
}

/// [G, A / G, D] scaled queries of one row, or [G, n * A / G, D] of several.
at::Tensor group_queries(const at::Tensor& query, int64_t groups) {
  const int64_t n = query.size(0), head_size = query.size(2);
  const at::Tensor scaled = query * (1.0 / std::sqrt(static_cast<double>(head_size)));
  return scaled.view({n, groups, -1, head_size}).transpose(0, 1).reshape({groups, -1, head_size});
}

/// Keys and values of a run's slot up to its last row: [G, T, D] each.
struct SlotRows {
  at::Tensor keys, values;
};

SlotRows rows_of(const ForwardPlan& plan, const Run& run, int64_t layer, const KvCache& cache) {
  const BatchToken& last = plan.rows[static_cast<size_t>(run.end) - 1];
  const auto read = [&](KvSide side) {
    return cache.read(side, layer, last.slot, last.cache_row + 1);
  };
  return {read(KvSide::Keys), read(KvSide::Values)};
}

/// [n, T - from] 0 where a row sees a cache row, else minus infinity.
at::Tensor mask_of(const ForwardPlan& plan, const Run& run, int64_t window) {
  const auto& first = plan.rows[static_cast<size_t>(run.begin)];
  const int64_t n = run.end - run.begin, length = first.cache_row + n;
  // Committed rows need a mask only where a window hides some of them.
  const int64_t from = window > 0 ? 0 : first.start;
  at::Tensor mask = at::full({n, length - from}, -std::numeric_limits<float>::infinity());
  auto visible = mask.accessor<float, 2>();
  for (int64_t i = 0; i < n; ++i) {
    const auto& row = plan.rows[static_cast<size_t>(run.begin + i)];
    const auto path = plan.path(row);
    const int64_t hidden = window > 0 ? std::max<int64_t>(row.position + 1 - window, 0) : 0;
    for (int64_t at = std::max(from, hidden); at < first.start; ++at) visible[i][at - from] = 0;
    for (size_t j = 0; j < path.size(); ++j)
      if (first.start + static_cast<int64_t>(j) >= hidden) visible[i][path[j] - from] = 0;
  }
  return mask;
}

}  // namespace

void write_cache(const ForwardPlan& plan, int64_t layer, const at::Tensor& keys,
                 const at::Tensor& values, KvCache& cache) {
  MEDUSA_ASSERT(cache.layout() == KvLayout::Rows);
  for (const Run& run : runs_of(plan)) {
    const auto& row = plan.rows[static_cast<size_t>(run.begin)];
    const auto store = [&](KvSide side, const at::Tensor& rows) {
      cache.write(side, layer, row.slot, row.cache_row,
                  rows.narrow(0, run.begin, run.end - run.begin).transpose(0, 1));  // [G, n, D]
    };
    store(KvSide::Keys, keys);
    store(KvSide::Values, values);
  }
}

at::Tensor path_attention(const ForwardPlan& plan, int64_t layer, const at::Tensor& query,
                          const KvCache& cache, int64_t window) {
  std::vector<at::Tensor> out;
  for (const Run& run : runs_of(plan)) {
    const SlotRows all = rows_of(plan, run, layer, cache);
    for (int64_t i = run.begin; i < run.end; ++i) {
      const auto& row = plan.rows[static_cast<size_t>(i)];
      const auto path = plan.path(row);
      const int64_t length = row.position + 1;
      const int64_t seen = window > 0 ? std::min(window, length) : length;
      const auto in_order = [&](const at::Tensor& rows) {
        if (row.contiguous) return rows.narrow(1, 0, length).to(at::kFloat);
        const at::Tensor index =
            at::tensor(at::ArrayRef<int64_t>(path.data(), path.size())).to(rows.device());
        return at::cat({rows.narrow(1, 0, row.start), rows.index_select(1, index)}, 1)
            .to(at::kFloat);
      };
      const auto gather = [&](const at::Tensor& rows) {  // [G, seen, D]
        return in_order(rows).narrow(1, length - seen, seen);
      };
      const at::Tensor q = group_queries(query.narrow(0, i, 1), all.keys.size(0));  // [G, A/G, D]
      const at::Tensor weights = at::bmm(q, gather(all.keys).transpose(1, 2)).softmax(-1);
      out.push_back(at::bmm(weights, gather(all.values)).reshape({1, -1}));  // [1, A D]
    }
  }
  return at::cat(out);
}

const std::vector<at::Tensor>& AttentionMasks::of(int64_t window) {
  const auto [found, is_new] = by_window_.try_emplace(window);
  if (is_new)
    for (const Run& run : runs_of(plan_))
      found->second.push_back(mask_of(plan_, run, window).to(device_));
  return found->second;
}

at::Tensor masked_attention(const ForwardPlan& plan, int64_t layer, const at::Tensor& query,
                            const KvCache& cache, AttentionMasks& masks, int64_t window) {
  auto mask = masks.of(window).begin();
  std::vector<at::Tensor> out;
  for (const Run& run : runs_of(plan)) {
    const auto& first = plan.rows[static_cast<size_t>(run.begin)];
    const int64_t n = run.end - run.begin, length = first.cache_row + n, masked = mask->size(1);
    const SlotRows all = rows_of(plan, run, layer, cache);
    const int64_t groups = all.keys.size(0), per_group = query.size(1) / groups;
    const at::Tensor keys = all.keys.to(at::kFloat), values = all.values.to(at::kFloat);
    const at::Tensor q = group_queries(query.narrow(0, run.begin, n), groups);  // [G, n A/G, D]
    const at::Tensor scores = at::bmm(q, keys.transpose(1, 2)).view({groups, n, per_group, length});
    scores.narrow(3, length - masked, masked).add_((mask++)->view({1, n, 1, masked}));
    const at::Tensor attention_out =
        at::bmm(scores.softmax(-1).view({groups, n * per_group, length}), values);
    out.push_back(attention_out.view({groups, n, per_group, -1})
                      .transpose(0, 1)
                      .reshape({n, -1}));  // [n, A D]
  }
  return at::cat(out);
}

}  // namespace medusa
