// One tree out of several drafters' proposals: what they have in common is proposed once, and rows
// go to the nodes that pay for them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fields.h"
#include "infer/drafter.h"
#include "infer/drafter_kind.h"
#include "infer/drafter_spec.h"
#include "infer/drafters/acceptance_stats.h"
#include "infer/drafters/heads_backoff.h"
#include "infer/drafters/tree_pruning.h"
#include "infer/step_cost.h"

namespace medusa {

struct MergeConfig {
  std::vector<DrafterKind> drafters{DrafterKind::Medusa, DrafterKind::PromptLookup};
  int32_t budget = 32;

  template <typename Fields>
  void fields(Fields& f) {
    f("drafters", drafters, "whose proposals are merged",
      Rule<DrafterKind>{mergeable_names(), is_mergeable});
    f("budget", budget, "most nodes of the merged tree, the root included", between(2, 64));
  }
  /// @throws UserError  fewer than two drafters, or one of them twice.
  void validate() const;
};

/// One whose proposals are merged.
struct Proposer {
  DrafterKind kind = DrafterKind::None;
  std::unique_ptr<Drafter> drafter;
  bool runs_heads = false;                               // whose drafting costs StepCost::drafting
  std::shared_ptr<AcceptanceStats> all_texts = nullptr;  // of its kind; null: each text begins anew
};

/// DrafterSpec::weigh of drafters that look texts up: that costs nothing, their rows do, and some
/// texts never repeat anything.
DrafterFactory weigh_lookups(const InferConfig& config, const DraftParts& parts,
                             DrafterFactory made);

/// Makes what counts the gain of running heads in all texts, in tokens.
inline std::shared_ptr<FadingMean> heads_gain_of_all_texts() {
  return std::make_shared<FadingMean>(0.95);
}

/// A node's acceptance probability is what its drafter's record says; where several drafters
/// propose it, the largest. Of all nodes those are proposed that gain more than their rows cost:
/// few or none where nobody has been right or rows are costly. A drafter alone is weighed in the
/// same way. Heads are not run (heads_backoff.h) where what they add to the others' nodes is lately
/// less than running them costs.
class MergeDrafter : public Drafter {
 public:
  static constexpr int32_t kTrialRuns = 4;  // before a text says itself whether heads may back off

  /// @param proposers  at least one.
  /// @param budget     most nodes of a tree, the root included.
  /// @param cost       of rows and, if it is known, of drafting; else heads always run.
  /// @param all_texts  what heads gained in them says whether they run in a text that has not
  ///                   tried them yet; null: it tries them.
  MergeDrafter(std::vector<Proposer> proposers, int32_t budget, StepCost cost,
               std::shared_ptr<FadingMean> all_texts = nullptr);

  std::span<const int32_t> feature_layers() const override;
  void begin(std::span<const TokenId> prompt) override;
  void read_prompt(const at::Tensor& features) override;
  CandidateTree propose(const DraftContext& context, const Random& random) override;
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override;

 private:
  struct Member {
    Proposer proposer;
    ProposalStats record;
  };
  static Drafter* drafter_of(const Member& member) { return member.proposer.drafter.get(); }

  /// Everything that anyone proposes, duplicates folded.
  struct Folded {
    CandidateTree tree;
    std::vector<double> accept_probs;   // [N]
    std::vector<double> without_heads;  // [N] by those who run no heads; 0: none of them has it
  };
  Folded fold(const DraftContext& context, const Random& random, bool run_heads);
  bool heads_pay(double heads_cost) const;

  std::vector<Member> members_;
  int32_t budget_;
  int32_t num_runners_ = 0;    // members that run heads
  StepCost cost_;              // of a sequence alone
  int32_t num_sequences_ = 1;  // that shared the last pass
  double drafting_cost_ = 0;   // of its proposal: of heads that were run
  Throughput throughput_;
  HeadsBackoff backoff_;
  FadingMean heads_gain_;  // what running heads gained in this text, in tokens
  std::shared_ptr<FadingMean> heads_gain_of_all_;  // in all texts; null: nobody says
};

}  // namespace medusa
