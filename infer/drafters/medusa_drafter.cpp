#include "infer/drafters/medusa_drafter.h"

namespace medusa {

CandidateTree MedusaDrafter::propose(const DraftContext& context, const Random& /*random*/) {
  const TokenId root = context.tokens.back();
  CandidateTree tree = root_only(root);
  if (!context.hidden.defined() || context.max_depth < 1 || context.max_nodes < 2) return tree;

  const HeadGuesses& guesses = guesser_.guess(context.hidden, {&root, 1});
  // Nodes come in order of depth, so the part that fits is a prefix and holds every node's parent.
  for (size_t i = 1; i < shape_.depths.size(); ++i) {
    if (shape_.depths[i] > context.max_depth || tree.size() == context.max_nodes) break;
    tree.tokens.push_back(guesses.token(0, shape_.depths[i] - 1, shape_.ranks[i]));
    tree.parents.push_back(shape_.parents[i]);
  }
  tree.num_verify = tree.size();
  return tree;
}

}  // namespace medusa
