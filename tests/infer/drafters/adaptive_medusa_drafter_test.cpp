#include "infer/drafters/adaptive_medusa_drafter.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "infer/drafters/medusa_drafter.h"
#include "tests/base/error_text.h"
#include "tests/infer/expect_tree.h"

namespace medusa {
namespace {

constexpr TokenId kRight = 1, kWrong = 2;

/// Proposes the whole tree; its first path down is right or wrong, as is said, the others wrong.
class SaidDrafter : public Drafter {
 public:
  SaidDrafter(const TreeShape& shape, const bool& right, int& asked)
      : shape_(shape), right_(right), asked_(asked) {}

  CandidateTree propose(const DraftContext& context, const Random& /*random*/) override {
    ++asked_;
    CandidateTree tree;
    for (size_t i = 0; i < shape_.parents.size(); ++i) {
      if (shape_.depths[i] > context.max_depth) break;
      const bool first = shape_.ranks[i] == 0;
      tree.tokens.push_back(first && right_ ? kRight : kWrong + shape_.ranks[i]);
      tree.parents.push_back(shape_.parents[i]);
      tree.confidences.push_back(0.5F);
    }
    tree.num_verify = tree.size();
    return tree;
  }

 private:
  const TreeShape& shape_;
  const bool& right_;
  int& asked_;
};

class AdaptiveMedusa : public testing::Test {
 protected:
  AdaptiveMedusa() { shape_.accept_probs = {1, 0.4, 0.1, 0.2}; }

  /// One step of a text of nothing but kRight. @returns  the nodes that were proposed.
  int32_t step(AdaptiveMedusaDrafter& drafter, int32_t max_depth = 10, int32_t sequences = 1) {
    const CandidateTree tree =
        drafter.propose({text_, hidden_, max_depth, 64, 0, sequences}, Random(1));
    Acceptance accepted;
    accepted.next = kRight;
    accepted.path = fixtures::path_along(tree, std::vector<TokenId>(3, kRight));
    drafter.observe(tree, {}, accepted);
    return tree.size();
  }

  AdaptiveMedusaDrafter make(const StepCost& cost,
                             const std::shared_ptr<AcceptanceStats>& all_texts = nullptr) {
    return {std::make_unique<SaidDrafter>(shape_, right_, asked_), shape_, cost, all_texts};
  }

  TreeShape shape_ = make_choice_tree({{0}, {1}, {0, 0}}, 2, "test").shape();
  bool right_ = true;
  int asked_ = 0;
  std::vector<TokenId> text_{kRight};
  at::Tensor hidden_ = at::zeros({4});
};

TEST_F(AdaptiveMedusa, ProposesEverythingWhereRowsCostNothing) {
  AdaptiveMedusaDrafter drafter = make({});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(step(drafter), 4) << i;
}

TEST_F(AdaptiveMedusa, BeginsWithTheNodesThatCalibrationFoundToPay) {
  AdaptiveMedusaDrafter cheap = make({{1, 1.05, 1.1, 1.15}, 0.02});
  EXPECT_EQ(step(cheap), 4);
  AdaptiveMedusaDrafter costlier = make({{1, 1.15, 1.3, 1.45}, 0.02});
  EXPECT_EQ(step(costlier), 3) << "the second draft of head 0 is right in one of ten places";
  AdaptiveMedusaDrafter costly = make({{1, 1.3, 1.6, 1.9}, 0.02});
  EXPECT_EQ(step(costly), 2);
  AdaptiveMedusaDrafter too_costly = make({{1, 1.3, 1.6, 1.9}, 0.2});
  EXPECT_EQ(step(too_costly), 1) << "drafting costs, too";
}

TEST_F(AdaptiveMedusa, ProposesTheWholeTreeWhereTheDecoderChooses) {
  AdaptiveMedusaDrafter drafter = make({{1, 1.3, 1.6, 1.9}, 0.02});
  const CandidateTree tree = drafter.propose({.tokens = text_,
                                              .hidden = hidden_,
                                              .max_depth = 10,
                                              .max_nodes = 64,
                                              .slot = 0,
                                              .num_sequences = 1,
                                              .pruned_jointly = true},
                                             Random(1));
  EXPECT_EQ(tree.size(), 4) << "alone it would propose two";
  EXPECT_EQ(tree.accept_probs, (std::vector<double>{1, 0.4, 0.1, 0.2}));
}

TEST_F(AdaptiveMedusa, LearnsThatADraftIsOftenRightHere) {
  AdaptiveMedusaDrafter drafter = make({{1, 1.3, 1.6, 1.9}, 0.02});
  EXPECT_EQ(step(drafter), 2);
  for (int i = 0; i < 30; ++i) step(drafter);
  EXPECT_EQ(step(drafter), 3) << "the draft below it is always right, though it was left out";
}

TEST_F(AdaptiveMedusa, DecodesPlainlyWhereDraftsFailAndTriesNowAndThen) {
  AdaptiveMedusaDrafter drafter = make({{1, 1.05, 1.1, 1.15}, 0.04});
  right_ = false;
  int drafted = 0;
  for (int i = 0; i < 40; ++i) drafted += step(drafter) > 1 ? 1 : 0;
  EXPECT_LT(drafted, 20);
  asked_ = 0;
  for (int i = 0; i < 10 * HeadsBackoff::kRunEvery; ++i) EXPECT_EQ(step(drafter), 1) << i;
  EXPECT_EQ(asked_, 10);
  right_ = true;
  int steps = 0;
  while (steps < 1000 && step(drafter) == 1) ++steps;
  EXPECT_LT(steps, 40 * HeadsBackoff::kRunEvery) << "what it asks for is judged";
}

TEST_F(AdaptiveMedusa, BeginsPlainlyWhereDraftsFailedInTheTextsBefore) {
  const StepCost cost{{1, 1.05, 1.1, 1.15}, 0.04};
  const auto rates = rates_of_all_texts();
  AdaptiveMedusaDrafter first = make(cost, rates);
  right_ = false;
  EXPECT_EQ(step(first), 4);
  for (int i = 0; i < 300; ++i) step(first);
  AdaptiveMedusaDrafter second = make(cost, rates);
  EXPECT_EQ(step(second), 1);
  right_ = true;
  for (int i = 0; i < 10 * HeadsBackoff::kRunEvery; ++i) step(second);
  EXPECT_GT(step(second), 1) << "this text is another one";
}

TEST_F(AdaptiveMedusa, ProposesLessWhereOthersFillThePass) {
  // Rows are free up to eight, beyond them each costs an eighth of a pass.
  const StepCost cost{{1, 1, 1, 1, 1, 1, 1, 1, 1.125}};
  for (const auto& [sequences, nodes] : {std::pair{1, 4}, {2, 4}, {8, 1}}) {
    AdaptiveMedusaDrafter drafter = make(cost);
    EXPECT_EQ(step(drafter, 10, sequences), nodes) << sequences;
  }
}

TEST_F(AdaptiveMedusa, RunsSeldomerWhereDraftingIsCostly) {
  right_ = false;
  // Four in a pass of 1.75, which draft for .35: a fifth of it.
  AdaptiveMedusaDrafter drafter = make({{1, 1.25, 1.5, 1.75}, 0.0875});
  for (int i = 0; i < 400; ++i) EXPECT_EQ(step(drafter, 10, 4), 1);
  EXPECT_EQ(asked_, 400 / 40) << "a two-hundredth of the time";
  asked_ = 0;
  AdaptiveMedusaDrafter costly = make({{1, 1, 1, 1, 1.125, 1.25, 1.375, 1.5}, 0.1});
  for (int i = 0; i < 400; ++i) EXPECT_EQ(step(costly, 10, 4), 1);
  EXPECT_EQ(asked_, 400 / 80) << "their passes cost no more than one's";
}

TEST_F(AdaptiveMedusa, NeverRunsHeadsWhoseDraftsWouldNotPayIfAlwaysRight) {
  // With drafting a node costs 1.25 plain steps and gains at most one token.
  AdaptiveMedusaDrafter drafter = make({{1, 2, 3, 4}, 0.25});
  for (int i = 0; i < 400; ++i) EXPECT_EQ(step(drafter), 1);
  EXPECT_EQ(asked_, 0);
  // Two nodes gain two tokens for 1.75.
  AdaptiveMedusaDrafter hopeful = make({{1, 1.75, 2.5, 3.25}, 0.25});
  for (int i = 0; i < 400; ++i) step(hopeful);
  EXPECT_GT(asked_, 0);
}

TEST_F(AdaptiveMedusa, KeepsToTheEndOfTheText) {
  AdaptiveMedusaDrafter drafter = make({});
  EXPECT_EQ(step(drafter, 1), 3);
  EXPECT_EQ(step(drafter, 0), 1);
}

TEST(MedusaSettings, ATreeIsAdaptiveOrDynamic) {
  EXPECT_EQ(fixtures::error_text(
                [] { MedusaConfig{.adaptive = true, .dynamic = true, .nodes = {}}.validate(); }),
            "medusa: adaptive and dynamic are both true, expected one of them: parts of the choice "
            "tree, or trees of its steps' own; set one to false");
}

}  // namespace
}  // namespace medusa
