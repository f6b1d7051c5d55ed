#include "infer/candidate_tree.h"

#include <algorithm>

#include "base/check.h"

namespace medusa {

int64_t depth_of(const CandidateTree& tree) {
  std::vector<int64_t> depths(static_cast<size_t>(tree.num_verify), 0);
  int64_t deepest = 0;
  for (size_t i = 1; i < depths.size(); ++i) {
    depths[i] = depths[static_cast<size_t>(tree.parents[i])] + 1;
    deepest = std::max(deepest, depths[i]);
  }
  return deepest;
}

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
