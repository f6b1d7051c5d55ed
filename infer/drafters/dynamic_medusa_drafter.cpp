#include "infer/drafters/dynamic_medusa_drafter.h"

#include <algorithm>
#include <vector>

#include "heads/draft_temperature.h"
#include "heads/path_drafts.h"

namespace medusa {

/// Adds the children of all nodes of this depth.
/// @returns  whether there was one.
bool DynamicMedusaDrafter::expand(int32_t depth, PathDrafts& drafts, BestPaths& paths) const {
  const std::vector<int32_t> parents = paths.best_of(depth, paths.nodes().size());
  if (parents.empty()) return false;
  std::vector<TokenId> tokens(parents.size() * static_cast<size_t>(depth));  // [parents, depth]
  auto step = tokens.rbegin();  // from the last node upwards
  for (auto node = parents.rbegin(); node != parents.rend(); ++node)
    for (int32_t at = *node; at > 0; at = paths.nodes()[static_cast<size_t>(at)].parent)
      *step++ = paths.nodes()[static_cast<size_t>(at)].token;
  const NextDrafts next = drafts.after(tokens, depth);
  const double temperature = temperatures_.empty() ? 1 : temperatures_[static_cast<size_t>(depth)];
  std::vector<float> log_probs(static_cast<size_t>(next.top_k()));
  std::vector<double> scaled(log_probs.size());
  for (size_t path = 0; path < parents.size(); ++path) {
    const auto row = static_cast<int64_t>(path);
    for (size_t rank = 0; rank < log_probs.size(); ++rank)
      log_probs[rank] = next.log_prob(row, static_cast<int64_t>(rank));
    at_temperature(log_probs, temperature, scaled);
    for (size_t rank = 0; rank < scaled.size(); ++rank)
      paths.add(parents[path], next.token(row, static_cast<int64_t>(rank)), scaled[rank]);
  }
  return true;
}

CandidateTree DynamicMedusaDrafter::propose(const DraftContext& context, const Random& /*random*/) {
  const TokenId root = context.tokens.back();
  const int32_t num_nodes = std::min(num_nodes_, context.max_nodes);
  const auto max_depth =
      static_cast<int32_t>(std::min<int64_t>(context.max_depth, runner_.num_heads()));
  if (!context.hidden.defined() || num_nodes < 2 || max_depth < 1) return root_only(root);

  PathDrafts drafts(runner_, context.hidden, root, max_depth);
  BestPaths paths(root, num_nodes);
  for (int32_t depth = 0; depth < max_depth && expand(depth, drafts, paths); ++depth)
    paths.keep_best();
  return paths.tree();
}

}  // namespace medusa
