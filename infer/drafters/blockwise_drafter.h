// Blockwise parallel decoding: the heads' top-k drafts as one plain block. Stern, Shazeer and
// Uszkoreit (arXiv:1811.03115), on Medusa's heads. The greedy rule is the paper's exact acceptance;
// rules/blockwise_rule.h has its lossy ones.
#pragma once

#include <optional>

#include "base/fields.h"
#include "heads/heads_runner.h"
#include "infer/drafter.h"

namespace medusa {

struct BlockwiseConfig {
  std::optional<int32_t> block;

  template <typename Fields>
  void fields(Fields& f) {
    f("block", block, "tokens drafted at the same time, by one head each; null: all heads",
      between(1, 63));
  }
  void validate() const {}
};

/// The block that the settings ask for.
/// @throws UserError  it is of more tokens than there are heads.
int32_t block_of(const BlockwiseConfig& config, int64_t num_heads);

class BlockwiseDrafter : public Drafter {
 public:
  /// @param runner  kept by reference; must outlive this.
  /// @param block   1 to the runner's number of heads.
  BlockwiseDrafter(HeadsRunner& runner, int32_t block) : runner_(runner), block_(block) {}

  /// Only the root where there is no state yet (a prompt of one token).
  CandidateTree propose(const DraftContext& context, const Random& random) override;

 private:
  HeadsRunner& runner_;
  int32_t block_;
};

}  // namespace medusa
