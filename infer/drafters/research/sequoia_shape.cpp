#include "infer/drafters/research/sequoia_shape.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/check.h"

namespace medusa {
namespace {

constexpr double kPriorTrials = 8;  // what the prior weighs

double prior(int32_t sibling) { return 0.5 * std::pow(0.4, sibling); }

/// The dynamic program. A forest (n, d, k) is n nodes in the subtrees of siblings k, k + 1, … at
/// depth d, in units of their parent being right.
class Program {
 public:
  Program(const PositionalAcceptance& acceptance, int32_t num_nodes, int32_t max_depth,
          int32_t max_children)
      : nodes_(num_nodes), depth_(max_depth), children_(max_children) {
    values_.assign(static_cast<size_t>((depth_ + 2) * (children_ + 1) * nodes_), 0);
    firsts_.assign(values_.size(), 0);
    for (int32_t d = depth_; d >= 1; --d)
      for (int32_t k = children_ - 1; k >= 0; --k)
        for (int32_t n = 1; n < nodes_; ++n) solve(acceptance.rate(d, k), n, d, k);
  }

  double value(int32_t n, int32_t d, int32_t k) const { return values_[at(n, d, k)]; }

  /// Nodes of sibling k's subtree in the best forest; 0: it and its younger siblings are left out.
  int32_t first(int32_t n, int32_t d, int32_t k) const { return firsts_[at(n, d, k)]; }

 private:
  /// Sibling k's subtree takes m of the n nodes, one of them itself.
  void solve(double rate, int32_t n, int32_t d, int32_t k) {
    double best = 0;
    int32_t taken = 0;
    for (int32_t m = 1; m <= n; ++m) {
      const double here = rate * (1 + value(m - 1, d + 1, 0)) + value(n - m, d, k + 1);
      if (here <= best) continue;
      best = here;
      taken = m;
    }
    values_[at(n, d, k)] = best;
    firsts_[at(n, d, k)] = taken;
  }

  size_t at(int32_t n, int32_t d, int32_t k) const {
    return static_cast<size_t>((d * (children_ + 1) + k) * nodes_ + n);
  }

  int32_t nodes_, depth_, children_;
  std::vector<double> values_;  // [depth + 2, children + 1, nodes]; nothing below depth or behind
                                // the last child: 0
  std::vector<int32_t> firsts_;
};

}  // namespace

const PositionalAcceptance::Counts* PositionalAcceptance::counts_of(int32_t depth) const {
  const auto at = static_cast<size_t>(by_depth_ ? depth - 1 : 0);
  return at < counts_.size() ? &counts_[at] : nullptr;
}

double PositionalAcceptance::rate(int32_t depth, int32_t sibling) const {
  const Counts* counts = counts_of(depth);
  double least = 1;
  for (int32_t k = 0; k <= sibling; ++k) {
    const auto at = static_cast<size_t>(k);
    const bool counted = counts != nullptr && at < counts->tried.size();
    const double tried = counted ? counts->tried[at] : 0, right = counted ? counts->right[at] : 0;
    least = std::min(least, (right + kPriorTrials * prior(k)) / (tried + kPriorTrials));
  }
  return least;
}

void PositionalAcceptance::count(int32_t depth, int32_t siblings, int32_t right) {
  MEDUSA_ASSERT(depth >= 1 && right < siblings, depth, right, siblings);
  const auto at = static_cast<size_t>(by_depth_ ? depth - 1 : 0);
  if (counts_.size() <= at) counts_.resize(at + 1);
  Counts& counts = counts_[at];
  const auto n = static_cast<size_t>(siblings);
  if (counts.tried.size() < n) {
    counts.tried.resize(n, 0);
    counts.right.resize(n, 0);
  }
  for (size_t k = 0; k < n; ++k) counts.tried[k] += 1;
  if (right >= 0) counts.right[static_cast<size_t>(right)] += 1;
}

SequoiaShape best_shape(const PositionalAcceptance& acceptance, int32_t num_nodes,
                        int32_t max_depth, int32_t max_children) {
  MEDUSA_ASSERT(num_nodes >= 1 && max_depth >= 0 && max_children >= 1, num_nodes, max_depth);
  const Program program(acceptance, num_nodes, max_depth, max_children);
  SequoiaShape shape;
  shape.expected = 1 + program.value(num_nodes - 1, 1, 0);
  struct Subtree {
    int32_t below;  // nodes below its root
    int32_t depth;  // of its root
  };
  std::deque<Subtree> level_order{{num_nodes - 1, 0}};
  while (!level_order.empty()) {
    const Subtree tree = level_order.front();
    level_order.pop_front();
    int32_t left = tree.below, count = 0;
    if (tree.depth < max_depth)
      for (; left > 0 && count < max_children; ++count) {
        const int32_t taken = program.first(left, tree.depth + 1, count);
        if (taken == 0) break;
        level_order.push_back({taken - 1, tree.depth + 1});
        left -= taken;
      }
    shape.children.push_back(count);
  }
  return shape;
}

}  // namespace medusa
