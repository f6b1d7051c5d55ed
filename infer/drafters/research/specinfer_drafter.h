// A token tree from a draft model and other drafters at once.
// Paper: SpecInfer (arXiv:2305.09781) §3: expansion (a node gets several children) and merging
// (trees of several drafters become one).
#pragma once

#include <memory>
#include <vector>

#include "base/fields.h"
#include "infer/draft_models/draft_choice.h"
#include "infer/draft_models/draft_model.h"
#include "infer/drafter_kind.h"
#include "infer/drafters/merge_drafter.h"

namespace medusa {

struct SpecinferConfig {
  std::vector<int32_t> expansion{1, 1, 3, 1, 1};
  std::vector<DrafterKind> drafters{DrafterKind::PromptLookup};

  template <typename Fields>
  void fields(Fields& f) {
    f("expansion", expansion, "children of each of the draft model's nodes, depth by depth",
      between(1, 16));
    f("drafters", drafters, "whose proposals are merged with the draft model's tree; may be empty",
      Rule<DrafterKind>{mergeable_names(), is_mergeable});
  }
  void validate() const {}
};

/// The draft model's nodes come first, so the other drafters get what room is left. Under the
/// rejection rule siblings of the draft model were drawn without replacement and the others' tokens
/// are point masses; multi-step speculative sampling takes both in turn.
class SpecinferDrafter : public Drafter {
 public:
  SpecinferDrafter(const SpecinferConfig& config, std::unique_ptr<DraftSequence> sequence,
                   const DraftChoice& choice, std::vector<std::unique_ptr<Drafter>> others)
      : config_(config),
        sequence_(std::move(sequence)),
        choice_(choice),
        others_(std::move(others)) {}

  std::span<const int32_t> feature_layers() const override;
  void begin(std::span<const TokenId> prompt) override;
  void read_prompt(const at::Tensor& features) override;
  CandidateTree propose(const DraftContext& context, const Random& random) override;
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override;

 private:
  SpecinferConfig config_;
  std::unique_ptr<DraftSequence> sequence_;
  DraftChoice choice_;
  std::vector<std::unique_ptr<Drafter>> others_;
};

}  // namespace medusa
