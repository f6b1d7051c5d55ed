#include "infer/candidate_tree.h"

#include "base/check.h"

namespace medusa {

CandidateTree part_of(const CandidateTree& tree, std::span<const size_t> nodes) {
  MEDUSA_ASSERT(tree.num_verify == tree.size() && !tree.draft_probs.defined());
  CandidateTree part;
  std::vector<int32_t> places(tree.tokens.size(), -1);
  for (const size_t node : nodes) {
    const int32_t parent = tree.parents[node];
    places[node] = part.size();
    part.tokens.push_back(tree.tokens[node]);
    part.parents.push_back(parent < 0 ? -1 : places[static_cast<size_t>(parent)]);
    if (!tree.confidences.empty()) part.confidences.push_back(tree.confidences[node]);
    if (!tree.accept_probs.empty()) part.accept_probs.push_back(tree.accept_probs[node]);
    if (!tree.drafters.empty()) part.drafters.push_back(tree.drafters[node]);
  }
  part.num_verify = part.size();
  return part;
}

}  // namespace medusa
