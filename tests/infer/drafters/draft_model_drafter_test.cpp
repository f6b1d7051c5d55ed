// Drafters that decode with a draft model: chains, expanded trees, measured shapes.
#include <gtest/gtest.h>

#include "infer/factory.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "infer/rules/rejection_rule.h"
#include "tests/infer/expect_tree.h"
#include "tests/infer/toy_draft.h"
#include "tests/infer/toy_heads.h"
#include "tests/infer/toy_pairs.h"

namespace medusa {
namespace {

using fixtures::decode_toy;
using fixtures::Decoded;
using fixtures::ToyDraft;

const std::vector<TokenId> kTwice{1, 2, 3, 1, 2};
using fixtures::kWarm;

/// A drafter of this kind under this rule; the same draft model stands in for all that is asked.
class Drafting {
 public:
  Drafting(DrafterKind kind, RuleKind rule, float shake, const SamplingConfig& sampling = {},
           int64_t max_rows = 1000)
      : draft_(shake, max_rows) {
    config.drafter = kind;
    config.rule = rule;
    config.sampling = sampling;
    config.draft_model.schedule = {DraftScheduleKind::Constant, 4, 0.4};
  }
  DrafterFactory factory() {
    DraftParts parts = heads_.parts();
    parts.draft = parts.skipping = &draft_;
    return make_drafter_factory(config, parts);
  }

  InferConfig config;

 private:
  fixtures::ToyHeads heads_;
  ToyDraft draft_;
};

TEST(DraftModelDrafter, ADraftThatIsTheTargetIsAlwaysRight) {
  Drafting drafting(DrafterKind::DraftModel, RuleKind::Greedy, 0);
  const Decoded run = decode_toy(GreedyRule(), drafting.factory(), kTwice, {50, 64, {}});
  EXPECT_EQ(run.stats.steps, 10);
  EXPECT_EQ(run.stats.accepted, 40);
}

TEST(DraftModelDrafter, UnderTheMatchRuleItSeesTheTargetsNoise) {
  Drafting coupled(DrafterKind::DraftModel, RuleKind::Match, 0, kWarm);
  Drafting best(DrafterKind::DraftModel, RuleKind::Greedy, 0);
  int64_t coupled_steps = 0, best_steps = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Decoded with =
        decode_toy(MatchRule(kWarm), coupled.factory(), kTwice, {50, 64, {}}, seed);
    const Decoded without =
        decode_toy(MatchRule(kWarm), best.factory(), kTwice, {50, 64, {}}, seed);
    EXPECT_EQ(with.text, without.text);
    coupled_steps += with.stats.steps;
    best_steps += without.stats.steps;
  }
  EXPECT_EQ(coupled_steps, 20 * 10) << "the same distribution and noise: the same tokens";
  EXPECT_GT(best_steps, 20 * 13);
}

TEST(DraftModelDrafter, AFullDraftCacheMeansNoDraft) {
  Drafting drafting(DrafterKind::DraftModel, RuleKind::Greedy, 0, {}, /*max_rows=*/20);
  const Decoded run = decode_toy(GreedyRule(), drafting.factory(), kTwice, {50, 64, {}});
  EXPECT_EQ(run.text, fixtures::plain_text(kTwice, 50, {}, Random(1)));
  EXPECT_GT(run.stats.steps, 30);
}

TEST(DraftModelDrafter, HeuristicLearnsFromTextToTextTheOthersDoNot) {
  const auto proposed_in_second_text = [](DraftScheduleKind kind) {
    Drafting drafting(DrafterKind::DraftModel, RuleKind::Greedy, 0);
    drafting.config.draft_model.schedule = {kind, 2, 0.4};
    const DrafterFactory make = drafting.factory();
    decode_toy(GreedyRule(), make, kTwice, {60, 64, {}});
    return decode_toy(GreedyRule(), make, kTwice, {3, 64, {}}).stats.steps;
  };
  EXPECT_EQ(proposed_in_second_text(DraftScheduleKind::HeuristicTransient), 1);
  EXPECT_EQ(proposed_in_second_text(DraftScheduleKind::Heuristic), 1);
  const auto steps_of_a_long_second_text = [](DraftScheduleKind kind) {
    Drafting drafting(DrafterKind::DraftModel, RuleKind::Greedy, 0);
    drafting.config.draft_model.schedule = {kind, 1, 0.4};
    const DrafterFactory make = drafting.factory();
    decode_toy(GreedyRule(), make, kTwice, {60, 64, {}});
    return decode_toy(GreedyRule(), make, kTwice, {16, 64, {}}).stats.steps;
  };
  EXPECT_EQ(steps_of_a_long_second_text(DraftScheduleKind::Heuristic), 1);
  EXPECT_EQ(steps_of_a_long_second_text(DraftScheduleKind::HeuristicTransient), 4);  // 2, 4, 6, 4
}

class DrawnDrafts : public testing::TestWithParam<DrafterKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, DrawnDrafts,
                         testing::Values(DrafterKind::DraftModel, DrafterKind::Specinfer,
                                         DrafterKind::Sequoia, DrafterKind::LayerSkip),
                         [](const auto& each) { return enum_name(each.param); });

TEST_P(DrawnDrafts, TextHasTheTargetsDistributionUnderRejection) {
  for (const SamplingConfig& sampling : {kWarm, SamplingConfig{.temperature = 1.2, .top_p = 0.8}}) {
    Drafting drafting(GetParam(), RuleKind::Rejection, 1.5, sampling);
    drafting.config.specinfer.expansion = {2, 3};
    const fixtures::PairTest result =
        fixtures::test_pairs(RejectionRule(sampling), drafting.factory(), kTwice, sampling, 6000);
    EXPECT_GT(result.p, fixtures::least_p());
    EXPECT_GT(result.accepted, 1000);
  }
}

/// Tokens drawn from the draft, handed over as if chosen outright: the residual is then wrong.
class WithoutRows : public Drafter {
 public:
  explicit WithoutRows(std::unique_ptr<Drafter> inner) : inner_(std::move(inner)) {}
  CandidateTree propose(const DraftContext& context, const Random& random) override {
    CandidateTree tree = inner_->propose(context, random);
    EXPECT_TRUE(tree.size() == 1 || tree.draft_probs.defined());
    if (tree.draft_probs.defined()) tree.draft_probs.narrow(0, 1, tree.size() - 1).fill_(1.0 / 7);
    return tree;
  }
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override {
    inner_->observe(tree, output, accepted);
  }

 private:
  std::unique_ptr<Drafter> inner_;
};

TEST_P(DrawnDrafts, TheTestTellsAWrongDraftDistribution) {
  Drafting drafting(GetParam(), RuleKind::Rejection, 1.5, kWarm);
  const DrafterFactory inner = drafting.factory();
  const auto wrong = [&] { return std::make_unique<WithoutRows>(inner()); };
  EXPECT_LT(fixtures::test_pairs(RejectionRule(kWarm), wrong, kTwice, kWarm, 6000).p, 1e-6);
}

TEST(SpecinferDrafter, ExpandsEachDepthAndAddsWhatOthersPropose) {
  Drafting drafting(DrafterKind::Specinfer, RuleKind::Greedy, 0.5F);
  drafting.config.specinfer.expansion = {2, 1, 3};
  drafting.config.specinfer.drafters = {};
  const auto drafter = drafting.factory()();
  drafter->begin(kTwice);
  const CandidateTree tree = drafter->propose({kTwice, {}, 10, 64, 0}, Random(1));
  EXPECT_EQ(tree.parents, (std::vector<int32_t>{-1, 0, 0, 1, 2, 3, 3, 3, 4, 4, 4}));

  drafting.config.specinfer.drafters = {DrafterKind::PromptLookup};
  const auto both = drafting.factory()();
  both->begin(kTwice);
  const CandidateTree more = both->propose({kTwice, {}, 10, 64, 0}, Random(1));
  EXPECT_GE(fixtures::path_along(more, std::vector<TokenId>{3, 1, 2}).size(), 3U)
      << "the prompt says 1 2 3 1 2";
}

TEST(SequoiaDrafter, FollowsTheShapeThatItLearnt) {
  Drafting drafting(DrafterKind::Sequoia, RuleKind::Greedy,
                    0);  // the first sibling is always right
  drafting.config.sequoia.nodes = 6;
  const DrafterFactory make = drafting.factory();
  for (int i = 0; i < 30; ++i) decode_toy(GreedyRule(), make, kTwice, {60, 64, {}});
  const auto drafter = make();
  drafter->begin(kTwice);
  const CandidateTree tree = drafter->propose({kTwice, {}, 10, 64, 0}, Random(1));
  EXPECT_EQ(tree.parents, (std::vector<int32_t>{-1, 0, 1, 2, 3, 4})) << "a chain";
}

TEST(SequoiaDrafter, ShapesForHeadsAreTheirRanks) {
  SequoiaShape shape;
  shape.children = {2, 1, 0, 0};
  EXPECT_EQ(rank_paths(shape), (std::vector<RankPath>{{0}, {1}, {0, 0}}));
}

}  // namespace
}  // namespace medusa
