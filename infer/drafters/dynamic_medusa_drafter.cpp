#include "infer/drafters/dynamic_medusa_drafter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heads/draft_temperature.h"
#include "heads/path_drafts.h"

namespace medusa {

/// Adds the children of all nodes of this depth.
/// @returns  whether there was one.
bool DynamicMedusaDrafter::expand(int32_t depth, PathDrafts& drafts) {
  std::vector<int32_t> parents;
  std::vector<TokenId> paths;  // [parents, depth]
  for (int32_t i = 0; i < static_cast<int32_t>(nodes_.size()); ++i) {
    if (nodes_[static_cast<size_t>(i)].depth != depth) continue;
    parents.push_back(i);
    paths.resize(paths.size() + static_cast<size_t>(depth));
    auto step = paths.rbegin();  // from the node upwards
    for (const Node* node = &nodes_[static_cast<size_t>(i)]; node->parent >= 0;
         node = &nodes_[static_cast<size_t>(node->parent)])
      *step++ = node->token;
  }
  if (parents.empty()) return false;
  const NextDrafts next = drafts.after(paths, depth);
  const double temperature = temperatures_.empty() ? 1 : temperatures_[static_cast<size_t>(depth)];
  std::vector<float> log_probs(static_cast<size_t>(next.top_k()));
  std::vector<double> scaled(log_probs.size());
  for (size_t path = 0; path < parents.size(); ++path) {
    const auto row = static_cast<int64_t>(path);
    for (size_t rank = 0; rank < log_probs.size(); ++rank)
      log_probs[rank] = next.log_prob(row, static_cast<int64_t>(rank));
    at_temperature(log_probs, temperature, scaled);
    const double log_path_prob = nodes_[static_cast<size_t>(parents[path])].log_path_prob;
    for (size_t rank = 0; rank < scaled.size(); ++rank)
      nodes_.push_back({next.token(row, static_cast<int64_t>(rank)), parents[path], depth + 1,
                        log_path_prob + scaled[rank]});
  }
  return true;
}

/// Drops all but the most probable nodes. They bring their parents along, which are no less
/// probable and come before them.
void DynamicMedusaDrafter::keep_best(size_t count) {
  if (nodes_.size() <= count) return;
  std::vector<int32_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto is_better = [&](int32_t a, int32_t b) {
    const double x = nodes_[static_cast<size_t>(a)].log_path_prob;
    const double y = nodes_[static_cast<size_t>(b)].log_path_prob;
    return x != y ? x > y : a < b;
  };
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(order.begin(), end, order.end(), is_better);
  std::sort(order.begin(), end);
  std::vector<int32_t> place(nodes_.size(), -1);  // of the nodes that stay; the root stays first
  std::vector<Node> best;
  for (auto it = order.begin(); it != end; ++it) {
    place[static_cast<size_t>(*it)] = static_cast<int32_t>(best.size());
    best.push_back(nodes_[static_cast<size_t>(*it)]);
    if (best.back().parent >= 0)
      best.back().parent = place[static_cast<size_t>(best.back().parent)];
  }
  nodes_ = std::move(best);
}

CandidateTree DynamicMedusaDrafter::propose(const DraftContext& context, const Random& /*random*/) {
  const TokenId root = context.tokens.back();
  const int32_t num_nodes = std::min(num_nodes_, context.max_nodes);
  const auto max_depth =
      static_cast<int32_t>(std::min<int64_t>(context.max_depth, runner_.num_heads()));
  CandidateTree tree = root_only(root);
  if (!context.hidden.defined() || num_nodes < 2 || max_depth < 1) return tree;

  PathDrafts drafts(runner_, context.hidden, root, max_depth);
  tree.confidences = {1};
  nodes_ = {{.token = root}};
  for (int32_t depth = 0; depth < max_depth && expand(depth, drafts); ++depth)
    keep_best(static_cast<size_t>(num_nodes));
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
