// What became of a drafter's proposals: how often nodes of one kind were right.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "infer/candidate_tree.h"

namespace medusa {

/// Shares of hits, from a belief before the first trial to what happened lately.
class HitRates {
 public:
  static constexpr double kBeliefTrials = 16;

  /// @param belief_trials  that the belief weighs at first.
  explicit HitRates(double belief_trials = kBeliefTrials) : belief_trials_(belief_trials) {}

  double rate(int32_t kind, double belief) const;
  void count(int32_t kind, bool right);

 private:
  struct Count {
    double hits = 0, trials = 0;  // the old ones faded
    double belief_trials = 0;     // that the belief still weighs; fades too
  };
  double belief_trials_;
  std::map<int32_t, Count> counts_;
};

/// Follows one drafter through a text. Each proposal is judged against the text as it grows, to its
/// last depth, whether its nodes were in the step's tree or not: what is left out is measured too.
class ProposalRecord {
 public:
  ProposalRecord() = default;

  /// For proposals that are all one tree, or its first nodes: each place in it is a kind.
  /// @param rates          [N] how often the node is right if its parent is, before any trial.
  /// @param belief_trials  that these weigh at first.
  ProposalRecord(std::vector<double> rates, double belief_trials)
      : place_rates_(std::move(rates)), rates_(belief_trials) {}

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

  /// What a node counts as, and how often it is right before anything was counted.
  struct NodeKind {
    int32_t kind = 0;
    double belief = 1;
  };
  std::vector<NodeKind> kinds_of(const CandidateTree& tree) const;

  std::vector<double> place_rates_;  // empty: kinds are told by belief, or depth and place
  std::vector<Remembered> remembered_;
  HitRates rates_;
};

}  // namespace medusa
