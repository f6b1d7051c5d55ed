#include "infer/drafters/medusa_drafter.h"

#include <algorithm>

namespace medusa {

CandidateTree MedusaDrafter::propose(const DraftContext& context, const Random& /*random*/) {
  const TokenId root = context.tokens.back();
  CandidateTree tree = root_only(root);
  // Nodes come in order of depth, so the part that fits is a prefix and holds every node's parent,
  // and its last node is the deepest: that many heads are needed.
  const auto& depths = shape_.depths;
  const auto in_depth = std::upper_bound(depths.begin(), depths.end(), context.max_depth);
  const int64_t num_nodes = std::min<int64_t>(in_depth - depths.begin(), context.max_nodes);
  if (!context.hidden.defined() || num_nodes < 2) return tree;

  const int64_t num_heads = depths[static_cast<size_t>(num_nodes) - 1];
  const HeadGuesses& guesses = guesser_.guess(context.hidden, {&root, 1}, num_heads);
  for (size_t i = 1; i < static_cast<size_t>(num_nodes); ++i) {
    tree.tokens.push_back(guesses.token(0, depths[i] - 1, shape_.ranks[i]));
    tree.parents.push_back(shape_.parents[i]);
  }
  tree.num_verify = tree.size();
  return tree;
}

}  // namespace medusa
