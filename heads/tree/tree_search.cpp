#include "heads/tree/tree_search.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "base/check.h"
#include "heads/tree/step_sum.h"

namespace medusa {
namespace {

/// How often each path that ever was right was right.
std::map<RankPath, int64_t> count_paths(const HeadStatistics& statistics) {
  std::map<RankPath, int64_t> counts;
  for (int64_t i = 0; i < statistics.num_positions(); ++i) {
    RankPath path;
    for (const int16_t rank : statistics.ranks(i)) {
      if (rank < 0) break;
      path.push_back(rank);
      ++counts[path];
    }
  }
  return counts;
}

/// Orders a heap so that the most probable path is on top.
struct LessProbable {
  bool operator()(const PathValue& a, const PathValue& b) const {
    if (a.probability != b.probability) return a.probability < b.probability;
    return comes_before(b.path, a.path);
  }
};

/// Extends a path by one rank with the estimator of the header.
class PathEstimator {
 public:
  PathEstimator(const HeadStatistics& statistics, double smoothing)
      : statistics_(statistics),
        smoothing_(smoothing),
        path_counts_(count_paths(statistics)),
        head_counts_(statistics.head_counts()) {}

  PathValue extend(const PathValue& prefix, int32_t rank) const {
    PathValue value{prefix.path, 0, 0};
    value.path.push_back(rank);
    if (const auto found = path_counts_.find(value.path); found != path_counts_.end())
      value.count = found->second;
    const double marginal =
        static_cast<double>(head_counts_[prefix.path.size()][static_cast<size_t>(rank)]) /
        static_cast<double>(statistics_.num_positions());
    const double total = static_cast<double>(prefix.count) + smoothing_;
    if (total > 0)
      value.probability =
          prefix.probability * (static_cast<double>(value.count) + smoothing_ * marginal) / total;
    return value;
  }

 private:
  const HeadStatistics& statistics_;
  double smoothing_;
  std::map<RankPath, int64_t> path_counts_;
  std::vector<std::vector<int64_t>> head_counts_;
};

/// What a step with this tree emits where the true tokens have these ranks.
int64_t emitted_tokens(std::span<const int16_t> ranks, const std::set<RankPath>& tree) {
  int64_t tokens = 1;  // the target's own
  RankPath path;
  for (const int16_t rank : ranks) {
    path.push_back(rank);
    if (!tree.contains(path)) break;
    ++tokens;
  }
  return tokens;
}

std::vector<StepSum> sum_answers(const HeadStatistics& statistics,
                                 const std::vector<RankPath>& paths, StepStarts starts) {
  const std::set<RankPath> tree(paths.begin(), paths.end());
  std::vector<StepSum> sums(static_cast<size_t>(statistics.num_answers()));
  for (size_t answer = 0; answer < sums.size(); ++answer) {
    const auto [begin, end] = statistics.answer(static_cast<int64_t>(answer));
    for (int64_t i = begin; i < end;) {
      const int64_t emitted = emitted_tokens(statistics.ranks(i), tree);
      sums[answer] += {static_cast<double>(emitted), 1};
      i += starts == StepStarts::Replayed ? emitted : 1;
    }
  }
  return sums;
}

}  // namespace

std::vector<PathValue> rank_paths(const HeadStatistics& statistics, int64_t num_paths,
                                  double smoothing) {
  MEDUSA_ASSERT(statistics.num_positions() > 0);
  const PathEstimator estimator(statistics, smoothing);
  std::priority_queue<PathValue, std::vector<PathValue>, LessProbable> open;
  std::vector<PathValue> best;
  const auto open_children = [&](const PathValue& prefix) {
    if (static_cast<int64_t>(prefix.path.size()) == statistics.num_heads()) return;
    for (int32_t rank = 0; rank < statistics.top_k(); ++rank)
      open.push(estimator.extend(prefix, rank));
  };
  open_children({{}, statistics.num_positions(), 1.0});
  // No extension is more probable than its prefix, so the best path that is left is always open.
  while (static_cast<int64_t>(best.size()) < num_paths && !open.empty()) {
    best.push_back(open.top());
    open.pop();
    open_children(best.back());
  }
  return best;
}

double tokens_per_step(const HeadStatistics& statistics, const std::vector<RankPath>& paths,
                       StepStarts starts) {
  StepSum whole;
  for (const StepSum& answer : sum_answers(statistics, paths, starts)) whole += answer;
  MEDUSA_ASSERT(whole.steps > 0);
  return whole.tokens / whole.steps;
}

Estimate measure_tree(const HeadStatistics& statistics, const std::vector<RankPath>& paths,
                      StepStarts starts, const Random& random, int64_t num_resamples) {
  return tokens_per_step(sum_answers(statistics, paths, starts), random, num_resamples);
}

const TreeSizePoint& choose_size(const std::vector<TreeSizePoint>& sizes) {
  MEDUSA_ASSERT(!sizes.empty());
  const TreeSizePoint* best = nullptr;
  for (const TreeSizePoint& point : sizes) {
    MEDUSA_ASSERT(point.step_ms > 0, point.num_nodes, point.step_ms);
    const double gain =
        best ? point.tokens_per_step / point.step_ms - best->tokens_per_step / best->step_ms : 1.0;
    if (gain > 0 || (gain == 0 && point.num_nodes < best->num_nodes)) best = &point;
  }
  return *best;
}

}  // namespace medusa
