#include "infer/drafters/medusa_drafter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/backbone/tiny_model.h"
#include "tests/base/error_text.h"
#include "tests/infer/toy_heads.h"

namespace medusa {
namespace {

class MedusaDrafters : public testing::Test {
 protected:
  MedusaDrafters()
      : weights_(tiny_weights(1)), runner_(fixtures::arbitrary_heads(weights_, 2), weights_, 4) {}

  CandidateTree propose(int32_t max_depth, int32_t max_nodes) {
    MedusaDrafter drafter(runner_, shape_);
    return drafter.propose({tokens_, hidden_, max_depth, max_nodes}, Random(1));
  }

  Weights weights_;
  HeadsRunner runner_;
  TreeShape shape_ = make_choice_tree({{0}, {1}, {3}, {0, 0}, {0, 2}, {1, 0}}, 4, "test").shape();
  std::vector<TokenId> tokens_{5, 6, 7};
  at::Tensor hidden_ = at::randn({64}, at::make_generator<at::CPUGeneratorImpl>(3), at::kFloat);
};

TEST_F(MedusaDrafters, FillsTheChoiceTreeWithTheHeadsDrafts) {
  const CandidateTree tree = propose(10, 64);
  const HeadDrafts& drafts = runner_.draft(hidden_, std::vector<TokenId>{7});
  const auto draft = [&](int64_t head, int64_t rank) { return drafts.token(0, head, rank); };
  EXPECT_EQ(tree.tokens, (std::vector<TokenId>{7, draft(0, 0), draft(0, 1), draft(0, 3),
                                               draft(1, 0), draft(1, 2), draft(1, 0)}));
  EXPECT_EQ(tree.parents, (std::vector<int32_t>{-1, 0, 0, 0, 1, 1, 2}));
  EXPECT_EQ(tree.num_verify, 7);
  EXPECT_FALSE(tree.draft_probs.defined());
  ASSERT_EQ(tree.confidences.size(), 7U);
  EXPECT_FLOAT_EQ(tree.confidences[3], std::exp(drafts.log_prob(0, 0, 3)));
  EXPECT_FLOAT_EQ(tree.confidences[5], std::exp(drafts.log_prob(0, 1, 2)));
}

/// Sequential heads, then those whose drafts the token before corrects.
class PathsOfMedusaDrafters : public MedusaDrafters, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Corrections, PathsOfMedusaDrafters, testing::Values(0, 32),
                         testing::PrintToStringParamName());

TEST_P(PathsOfMedusaDrafters, AHeadDraftsAfterThePathOfEachNode) {
  const HeadInput input = GetParam() > 0 ? HeadInput::Root : HeadInput::Sequential;
  HeadsRunner runner(fixtures::arbitrary_heads(weights_, 3, input, GetParam()), weights_, 4);
  const std::vector<RankPath> paths{{0},    {1},    {3},       {0, 0},   {0, 2},
                                    {1, 0}, {3, 1}, {0, 2, 0}, {3, 1, 1}};
  const TreeShape shape = make_choice_tree(paths, 4, "test").shape();
  MedusaDrafter drafter(runner, shape);
  const CandidateTree tree = drafter.propose({tokens_, hidden_, 10, 64}, Random(1));
  ASSERT_EQ(tree.tokens.size(), paths.size() + 1);
  EXPECT_EQ(tree.parents, shape.parents);
  std::vector<std::vector<TokenId>> texts{{7}};  // from the root to each node
  for (size_t i = 1; i < tree.tokens.size(); ++i) {
    std::vector<TokenId> text = texts[static_cast<size_t>(tree.parents[i])];
    const auto head = static_cast<int64_t>(text.size()) - 1;
    EXPECT_EQ(tree.tokens[i], runner.draft(hidden_, text, head + 1).token(0, head, shape.ranks[i]));
    text.push_back(tree.tokens[i]);
    texts.push_back(text);
  }
  // What is drafted after different beginnings differs, or the test shows nothing.
  EXPECT_NE(tree.confidences[4], tree.confidences[6]);
}

TEST_F(MedusaDrafters, UsesThePartOfTheTreeThatFits) {
  EXPECT_EQ(propose(1, 64).parents, (std::vector<int32_t>{-1, 0, 0, 0}));
  EXPECT_EQ(propose(2, 5).parents, (std::vector<int32_t>{-1, 0, 0, 0, 1}));
  EXPECT_EQ(propose(2, 2).tokens.size(), 2U);
  for (const auto& tree : {propose(0, 64), propose(2, 1)}) {
    EXPECT_EQ(tree.tokens, (std::vector<TokenId>{7}));
    EXPECT_EQ(tree.num_verify, 1);
  }
}

TEST_F(MedusaDrafters, ComputesOnlyTheHeadsThatTheUsedPartReads) {
  const HeadDrafts& computed = runner_.draft(hidden_, std::vector<TokenId>{7});
  EXPECT_EQ(computed.num_heads, 2);
  const auto heads_of = [&](int32_t max_depth, int32_t max_nodes) {
    propose(max_depth, max_nodes);  // fills the runner's table anew
    return computed.num_heads;
  };
  EXPECT_EQ(heads_of(1, 64), 1);
  EXPECT_EQ(heads_of(10, 64), 2);
  EXPECT_EQ(heads_of(10, 4), 1);  // the three children of the root
  EXPECT_EQ(heads_of(10, 5), 2);
}

TEST_F(MedusaDrafters, AShallowTreeHasTheSameDraftsAsADeepOne) {
  const CandidateTree deep = propose(10, 64);
  for (const auto& [depth, nodes] : {std::pair{1, 64}, {10, 3}, {10, 6}}) {
    const CandidateTree part = propose(depth, nodes);
    for (size_t i = 0; i < part.tokens.size(); ++i) EXPECT_EQ(part.tokens[i], deep.tokens[i]);
  }
}

TEST_F(MedusaDrafters, ProposesOnlyTheRootOfATreeWithoutPaths) {
  shape_ = make_choice_tree({}, 4, "test").shape();
  EXPECT_EQ(propose(10, 64).tokens, (std::vector<TokenId>{7}));
}

TEST_F(MedusaDrafters, ProposesOnlyTheRootWithoutAState) {
  hidden_.reset();
  tokens_ = {7};
  EXPECT_EQ(propose(10, 64).tokens, (std::vector<TokenId>{7}));
}

TEST(MedusaConfig, RefusesNodesWithoutADynamicTree) {
  EXPECT_EQ(fixtures::error_text(
                [] { MedusaConfig{.adaptive = {}, .dynamic = false, .nodes = 8}.validate(); }),
            "medusa: nodes is 8 and dynamic is false, expected nodes only for dynamic trees; set "
            "dynamic: true, or calibrate a tree of that size with calibrate.nodes");
  EXPECT_NO_THROW((MedusaConfig{.adaptive = {}, .dynamic = true, .nodes = 8}.validate()));
}

}  // namespace
}  // namespace medusa
