#include "infer/draft_models/best_paths.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace medusa {

/// Leaves the most probable of these nodes, ascending.
void BestPaths::sort_best(std::vector<int32_t>& order, size_t count) const {
  if (order.size() > count) {
    const auto is_better = [this](int32_t a, int32_t b) {
      const double x = nodes_[static_cast<size_t>(a)].log_path_prob;
      const double y = nodes_[static_cast<size_t>(b)].log_path_prob;
      return x != y ? x > y : a < b;
    };
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                     is_better);
    order.resize(count);
  }
  std::sort(order.begin(), order.end());
}

std::vector<int32_t> BestPaths::best_of(int32_t depth, size_t count) const {
  std::vector<int32_t> order;
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].depth == depth) order.push_back(static_cast<int32_t>(i));
  sort_best(order, count);
  return order;
}

void BestPaths::keep_best() {
  if (nodes_.size() <= most_) return;
  std::vector<int32_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  sort_best(order, most_);
  std::vector<int32_t> index(nodes_.size(), -1);  // of the nodes that stay; the root stays first
  std::vector<Node> best;
  for (const int32_t node : order) {
    index[static_cast<size_t>(node)] = static_cast<int32_t>(best.size());
    best.push_back(nodes_[static_cast<size_t>(node)]);
    if (best.back().parent >= 0)
      best.back().parent = index[static_cast<size_t>(best.back().parent)];
  }
  nodes_ = std::move(best);
}

CandidateTree BestPaths::tree() const {
  CandidateTree tree = root_only(nodes_[0].token);
  tree.confidences = {1};
  for (size_t i = 1; i < nodes_.size(); ++i) {
    tree.tokens.push_back(nodes_[i].token);
    tree.parents.push_back(nodes_[i].parent);
    const Node& parent = nodes_[static_cast<size_t>(nodes_[i].parent)];
    tree.confidences.push_back(
        static_cast<float>(std::exp(nodes_[i].log_path_prob - parent.log_path_prob)));
  }
  tree.num_verify = tree.size();
  return tree;
}

}  // namespace medusa
