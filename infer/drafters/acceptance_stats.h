// What became of a drafter's proposals: how often nodes of one kind were right.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "infer/candidate_tree.h"

namespace medusa {

/// Shares of hits, from the drafter's confidence before the first trial to what happened lately.
class AcceptanceStats {
 public:
  static constexpr double kConfidenceTrials = 16;
  static constexpr double kFading = 0.99;          // of a kind's count from one trial to the next
  static constexpr double kFadingOfTexts = 0.999;  // the same, of what is counted over many texts
  static constexpr double kConfidenceTrialsOfTexts = 4;

  /// @param confidence_trials  that the drafter's confidence weighs at first.
  explicit AcceptanceStats(double confidence_trials = kConfidenceTrials, double fading = kFading)
      : confidence_trials_(confidence_trials), fading_(fading) {}

  /// Makes the statistics of one text, which begin where all texts have come to, and tell them what
  /// they count.
  AcceptanceStats(std::shared_ptr<AcceptanceStats> all_texts, double confidence_trials)
      : AcceptanceStats(confidence_trials) {
    all_texts_ = std::move(all_texts);
  }

  double rate(int32_t kind, double confidence) const;
  void count(int32_t kind, bool right);

 private:
  struct Count {
    double hits = 0, trials = 0;   // the old ones faded
    double confidence_trials = 0;  // that the drafter's confidence still weighs; fades too
  };
  double confidence_trials_;
  double fading_;
  std::map<int32_t, Count> counts_;
  std::shared_ptr<AcceptanceStats> all_texts_;  // null: this one stands alone
};

/// Makes what is counted over all texts that a decoder's drafters of one kind follow.
inline std::shared_ptr<AcceptanceStats> rates_of_all_texts() {
  return std::make_shared<AcceptanceStats>(AcceptanceStats::kConfidenceTrialsOfTexts,
                                           AcceptanceStats::kFadingOfTexts);
}

/// Follows one drafter through a text. Each proposal is judged against the text as it grows, to its
/// last depth, whether its nodes were in the step's tree or not: what is left out is measured too.
class ProposalStats {
 public:
  /// @param all_texts  where its rates begin; null: with the drafter's confidence.
  explicit ProposalStats(std::shared_ptr<AcceptanceStats> all_texts = nullptr)
      : rates_(std::move(all_texts), AcceptanceStats::kConfidenceTrials) {}

  /// Makes the statistics of proposals that are all one tree, or its first nodes: each place in it
  /// is a kind.
  /// @param rates              [N] how often the node is right if its parent is, before any trial.
  /// @param confidence_trials  that these weigh at first.
  ProposalStats(std::vector<double> rates, double confidence_trials,
                std::shared_ptr<AcceptanceStats> all_texts = nullptr)
      : place_rates_(std::move(rates)), rates_(std::move(all_texts), confidence_trials) {}

  /// [N] how probable it is that each node is right: the product, along its path, of how often
  /// nodes of a kind were right when their parent was. Nodes of about the same confidence are one
  /// kind; where the drafter does not say its confidence, those of one depth and place among
  /// siblings.
  std::vector<double> accept_probs(const CandidateTree& tree) const;

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
    double confidence = 1;
  };
  std::vector<NodeKind> kinds_of(const CandidateTree& tree) const;

  std::vector<double> place_rates_;  // empty: kinds are told by confidence, or depth and place
  std::vector<Remembered> remembered_;
  AcceptanceStats rates_;
};

}  // namespace medusa
