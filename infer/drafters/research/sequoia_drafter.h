// A tree whose shape fits the acceptance measured so far. Paper: Sequoia (arXiv:2402.12374).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "base/fields.h"
#include "heads/tree/choice_tree.h"
#include "infer/draft_models/draft_choice.h"
#include "infer/draft_models/draft_model.h"
#include "infer/drafters/medusa_drafter.h"
#include "infer/drafters/research/sequoia_shape.h"

namespace medusa {

inline constexpr int32_t kSequoiaMaxChildren = 10;  // of one node

/// Whose tokens fill the tree.
enum class SequoiaSource { DraftModel, Medusa };

template <>
struct EnumNames<SequoiaSource> {
  static constexpr auto values = std::to_array<std::pair<const char*, SequoiaSource>>(
      {{"draft_model", SequoiaSource::DraftModel}, {"medusa", SequoiaSource::Medusa}});
};

struct SequoiaConfig {
  SequoiaSource source = SequoiaSource::DraftModel;
  int32_t nodes = 16;
  int32_t depth = 6;

  template <typename Fields>
  void fields(Fields& f) {
    f("source", source, "whose tokens fill the tree");
    f("nodes", nodes, "nodes of the tree, the root included", between(2, 64));
    f("depth", depth, "levels below the root, at most", between(1, 16));
  }
  void validate() const {}
};

/// The tree of a draft model. Each new text gets the shape that is best for what all texts before
/// it showed; siblings are drawn without replacement where the rule draws.
class SequoiaDrafter : public Drafter {
 public:
  /// @param acceptance  shared by all texts; not by depth.
  SequoiaDrafter(const SequoiaConfig& config, std::shared_ptr<PositionalAcceptance> acceptance,
                 std::unique_ptr<DraftSequence> sequence, const DraftChoice& choice);

  void begin(std::span<const TokenId> prompt) override;
  CandidateTree propose(const DraftContext& context, const Random& random) override;
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override;

 private:
  std::shared_ptr<PositionalAcceptance> acceptance_;
  std::unique_ptr<DraftSequence> sequence_;
  DraftChoice choice_;
  SequoiaShape shape_;
};

/// Sequoia's shapes filled by Medusa's heads: a comparison with the calibrated choice tree.
class SequoiaMedusaDrafter : public Drafter {
 public:
  /// @param acceptance  shared by all texts; by depth, since heads get worse with it.
  SequoiaMedusaDrafter(const SequoiaConfig& config,
                       std::shared_ptr<PositionalAcceptance> acceptance, HeadsRunner& runner);

  CandidateTree propose(const DraftContext& context, const Random& random) override {
    return drafter_->propose(context, random);
  }
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override;

 private:
  std::shared_ptr<PositionalAcceptance> acceptance_;
  TreeShape shape_;
  std::optional<MedusaDrafter> drafter_;  // reads shape_
};

/// A shape as paths of sibling numbers, which are the ranks of a head's drafts.
std::vector<RankPath> rank_paths(const SequoiaShape& shape);

}  // namespace medusa
