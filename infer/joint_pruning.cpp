#include "infer/joint_pruning.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace medusa {
namespace {

struct Candidate {
  double accept_prob;
  size_t tree, node;
};

/// All nodes but the roots of trees that may be pruned, the most probable ones first. The sort is
/// stable: of equal probabilities the parent stays before its child, so each beginning leaves
/// trees.
std::vector<Candidate> ranked(std::span<CandidateTree* const> trees) {
  std::vector<Candidate> out;
  for (size_t t = 0; t < trees.size(); ++t)
    for (size_t i = 1; i < trees[t]->accept_probs.size(); ++i)
      out.push_back({trees[t]->accept_probs[i], t, i});
  std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
    return a.accept_prob > b.accept_prob;
  });
  return out;
}

}  // namespace

void JointPruning::prune(std::span<CandidateTree* const> trees, int32_t other_rows) const {
  int32_t rows = other_rows;  // that run in any case
  for (const CandidateTree* tree : trees) rows += tree->accept_probs.empty() ? tree->size() : 1;
  const std::vector<Candidate> candidates = ranked(trees);
  const double tokens_per_cost =
      throughput_.tokens_per_cost() * tokens_per_plain_pass(static_cast<int32_t>(trees.size()));
  double tokens = 0, best = 0;
  size_t num_chosen = 0;
  for (size_t n = 1; n <= candidates.size(); ++n) {
    tokens += candidates[n - 1].accept_prob;
    const double gain =
        tokens - tokens_per_cost * (cost_(rows + static_cast<int32_t>(n)) - cost_(rows));
    if (gain <= best) continue;
    best = gain;
    num_chosen = n;
  }
  if (num_chosen == candidates.size()) return;
  std::vector<std::vector<size_t>> chosen(trees.size(), {0});
  for (size_t n = 0; n < num_chosen; ++n) chosen[candidates[n].tree].push_back(candidates[n].node);
  for (size_t t = 0; t < trees.size(); ++t) {
    if (trees[t]->accept_probs.empty()) continue;
    std::sort(chosen[t].begin(), chosen[t].end());
    *trees[t] = part_of(*trees[t], chosen[t]);
  }
}

void JointPruning::count(int32_t num_sequences, int32_t rows, int64_t tokens) {
  throughput_.count(static_cast<double>(tokens),
                    tokens_per_plain_pass(num_sequences) * cost_(rows));
}

}  // namespace medusa
