// One tree out of several drafters' proposals: what they have in common is proposed once, and rows
// go to the nodes that are worth them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fields.h"
#include "infer/drafter.h"
#include "infer/drafter_kind.h"
#include "infer/drafters/proposal_record.h"
#include "infer/drafters/worthwhile_nodes.h"
#include "infer/step_cost.h"

namespace medusa {

/// Whether a drafter's trees may be pruned: it chooses tokens outright and reads no rows of them.
bool can_be_merged(DrafterKind kind);

struct MergeConfig {
  std::vector<DrafterKind> drafters{DrafterKind::Medusa, DrafterKind::PromptLookup};
  int32_t budget = 32;

  template <typename Fields>
  void fields(Fields& f) {
    f("drafters", drafters, "whose proposals are merged",
      Rule<DrafterKind>{"medusa | blockwise | prompt_lookup | retrieval", can_be_merged});
    f("budget", budget, "most nodes of the merged tree, the root included", between(2, 64));
  }
  /// @throws UserError  fewer than two drafters, or one of them twice.
  void validate() const;
};

/// A node's chance to be right is what its drafter's record says; where several drafters propose
/// it, the largest. Of all nodes those are proposed that gain more than their rows cost: few or
/// none where nobody has been right or rows are dear. A drafter alone is weighed in the same way.
class MergeDrafter : public Drafter {
 public:
  /// @param drafters  at least one.
  /// @param budget    most nodes of a tree, the root included.
  MergeDrafter(std::vector<std::unique_ptr<Drafter>> drafters, int32_t budget, StepCost cost);

  void begin(std::span<const TokenId> prompt) override;
  CandidateTree propose(const DraftContext& context, const Random& random) override;
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override;

 private:
  struct Member {
    std::unique_ptr<Drafter> drafter;
    ProposalRecord record;
  };

  /// Everything that anyone proposes, duplicates folded.
  struct Folded {
    CandidateTree tree;
    std::vector<double> chances;  // [N]
  };
  Folded fold(const DraftContext& context, const Random& random);

  std::vector<Member> members_;
  int32_t budget_;
  StepCost cost_;      // of a sequence alone
  StepCost cost_now_;  // beside those that share the last step
  Pace pace_;
};

}  // namespace medusa
