// One tree out of several drafters' proposals: what they have in common is proposed once, and the
// nodes go to whoever has been right.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "infer/drafter.h"
#include "infer/drafter_kind.h"

namespace medusa {

/// Whether a drafter's trees may be pruned: it chooses tokens outright and reads no rows of them.
bool can_be_merged(DrafterKind kind);

struct MergeConfig {
  std::vector<DrafterKind> drafters{DrafterKind::Medusa, DrafterKind::PromptLookup};
  int32_t budget = 16;
  double min_gain = 0.05;

  template <typename Fields>
  void fields(Fields& f) {
    f("drafters", drafters, "whose proposals are merged",
      Rule<DrafterKind>{"medusa | blockwise | prompt_lookup", can_be_merged});
    f("budget", budget, "nodes of the merged tree, the root included", between(2, 64));
    f("min_gain", min_gain,
      "a node is left out when it has been right in a smaller share of the steps",
      between(0.0, 1.0));
  }
  /// @throws UserError  fewer than two drafters, or one of them twice.
  void validate() const;
};

/// How often a drafter's tokens of one depth and place among their siblings were right when their
/// parent was. Recent steps count more.
class HitRates {
 public:
  double rate(int32_t depth, int32_t sibling) const;
  void count(int32_t depth, int32_t sibling, bool right);

 private:
  struct Count {
    double hits = 0, trials = 0;  // the old ones faded, a belief before the first step too
  };
  std::map<std::pair<int32_t, int32_t>, Count> counts_;
};

/// A node is right with the product of its ancestors' rates and its own; where several drafters
/// propose it, with the largest of theirs. The most probable nodes up to the budget are proposed.
/// What was left out is measured too: a step tells its next tokens whatever was proposed.
class MergeDrafter : public Drafter {
 public:
  MergeDrafter(const MergeConfig& config, std::vector<std::unique_ptr<Drafter>> drafters);

  void begin(std::span<const TokenId> prompt) override;
  CandidateTree propose(const DraftContext& context, const Random& random) override;
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override;

 private:
  /// A drafter, its last proposal and its record.
  struct Member {
    std::unique_ptr<Drafter> drafter;
    CandidateTree tree;
    std::vector<int32_t> depths;    // [N]
    std::vector<int32_t> siblings;  // [N] how many of its siblings come before a node
    HitRates rates;
  };

  static void describe(Member& member);

  MergeConfig config_;
  std::vector<Member> members_;
};

}  // namespace medusa
