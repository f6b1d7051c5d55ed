// What became of a drafter's proposals: how often nodes of one kind were right.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "infer/candidate_tree.h"

namespace medusa {

/// Shares of hits, from a belief before the first trial to what happened lately.
class HitRates {
 public:
  static constexpr double kBeliefTrials = 16;  // that the belief weighs at first

  double rate(int32_t kind, double belief) const;
  void count(int32_t kind, bool right);

 private:
  struct Count {
    double hits = 0, trials = 0;           // the old ones faded
    double belief_trials = kBeliefTrials;  // that the belief still weighs; fades too
  };
  std::map<int32_t, Count> counts_;
};

/// Follows one drafter through a text. Each proposal is judged against the text as it grows, to its
/// last depth, whether its nodes were in the step's tree or not: what is left out is measured too.
class ProposalRecord {
 public:
  /// [N] how probable it is that each node is right: the product, along its path, of how often
  /// nodes of a kind were right when their parent was. Nodes of about the same belief are one kind;
  /// where the drafter does not say what it believes, those of one depth and place among siblings.
  std::vector<double> chances(const CandidateTree& tree) const;

  /// Judges the tree by the tokens that follow() tells from now on.
  void remember(const CandidateTree& tree);

  /// The text has grown by this token.
  void follow(TokenId token);

 private:
  struct Remembered {
    CandidateTree tree;
    std::vector<int32_t> kinds;  // [N]
    int32_t node = 0;            // the last one that was right
  };

  std::vector<Remembered> remembered_;
  HitRates rates_;
};

}  // namespace medusa
