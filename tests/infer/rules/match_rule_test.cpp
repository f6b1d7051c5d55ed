#include "infer/rules/match_rule.h"

#include <gtest/gtest.h>

#include "infer/decoder.h"
#include "tests/infer/toy_pairs.h"

namespace medusa {
namespace {

using fixtures::kPrompt;
using fixtures::kWarm;

/// Three siblings under the root, two children under each: most draws find a candidate.
DrafterFactory tree_drafter() {
  return [] {
    return std::make_unique<fixtures::ToyDrafter>(
        [](const DraftContext& context, const Random&, CandidateTree& tree) {
          const std::vector<float> logits = fixtures::toy_logits(context.tokens);
          for (const TokenId first : largest_tokens(logits, 3)) fixtures::add_node(tree, 0, first);
          for (int32_t parent = 1; parent <= 3; ++parent)
            for (const TokenId second : {0, 4}) fixtures::add_node(tree, parent, second);
        });
  };
}

TEST(MatchRule, TextHasTheTargetsDistribution) {
  const auto test = fixtures::test_pairs(MatchRule(kWarm), tree_drafter(), kPrompt, kWarm, 12000);
  EXPECT_GT(test.accepted, 8000);  // the candidates matter
  EXPECT_GT(test.p, fixtures::least_p());
}

TEST(MatchRule, InTheNucleusTextHasTheTargetsDistribution) {
  const SamplingConfig nucleus{.temperature = 1.2, .top_p = 0.8};
  const auto test =
      fixtures::test_pairs(MatchRule(nucleus), tree_drafter(), kPrompt, nucleus, 12000);
  EXPECT_GT(test.accepted, 8000);
  EXPECT_GT(test.p, fixtures::least_p());
  // The test can tell: the same text is not that of all tokens.
  EXPECT_LT(fixtures::test_pairs(MatchRule(nucleus), tree_drafter(), kPrompt, kWarm, 12000).p,
            0.01);
}

TEST(MatchRule, TheNumbersOfAPositionDecideItsTokenWhereverTheRootStands) {
  // A root deeper in the tree's own path: the draw at the child equals the draw with it as root.
  CandidateTree chain{{3, 0}, {-1, 0}, 2, {}};
  int64_t compared = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const std::vector<float> after_root = fixtures::toy_logits(kPrompt);
    std::vector<TokenId> context = kPrompt;
    context.push_back(0);
    const std::vector<float> after_child = fixtures::toy_logits(context);
    const at::Tensor both = at::stack({at::tensor(after_root), at::tensor(after_child)});
    const Acceptance deep = MatchRule(kWarm).accept(chain, both, 2, Random(seed));
    if (deep.path.empty()) continue;
    const Acceptance flat = MatchRule(kWarm).accept(
        root_only(0), at::tensor(after_child).unsqueeze(0), 3, Random(seed));
    EXPECT_EQ(deep.next, flat.next);
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

TEST(MatchRule, TopKAndTopPApply) {
  const SamplingConfig one{.temperature = 2, .top_k = 1};
  const SamplingConfig nucleus{.temperature = 2, .top_p = 0.01};
  const auto greedy = fixtures::plain_text(kPrompt, 20, SamplingConfig{}, Random(1));
  for (const SamplingConfig& sampling : {one, nucleus})
    EXPECT_EQ(fixtures::decode_toy(MatchRule(sampling), tree_drafter(), kPrompt, {20, 16, {}}).text,
              greedy);
}

}  // namespace
}  // namespace medusa
