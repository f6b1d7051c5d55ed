#include "infer/drafters/dynamic_medusa_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "heads/draft_temperature.h"
#include "heads/path_drafts.h"
#include "heads/tree/choice_tree.h"
#include "tests/backbone/tiny_model.h"
#include "tests/infer/toy_heads.h"

namespace medusa {
namespace {

constexpr int32_t kTopK = 4;
constexpr int32_t kHeads = 3;

/// What the heads read, and the rank of their correction.
class DynamicMedusaDrafters : public testing::TestWithParam<std::pair<HeadInput, int64_t>> {
 protected:
  struct ScoredPath {
    RankPath ranks;
    std::vector<TokenId> tokens;
    double log_path_prob = 0;
  };

  CandidateTree propose(int32_t num_nodes, int32_t max_depth = 63, int32_t max_nodes = 64) {
    DynamicMedusaDrafter drafter(runner_, temperatures_, num_nodes);
    return drafter.propose({tokens_, hidden_, max_depth, max_nodes}, Random(1));
  }

  /// Every path of ranks, each asked by itself.
  void add_all_paths(const ScoredPath& from, std::vector<ScoredPath>& all) {
    const auto depth = static_cast<int64_t>(from.ranks.size());
    if (depth == kHeads) return;
    PathDrafts drafts(runner_, hidden_, tokens_.back(), kHeads);
    const NextDrafts next = drafts.after(from.tokens, depth);
    std::vector<float> log_probs;
    std::vector<ScoredPath> children(kTopK, from);
    for (int32_t rank = 0; rank < kTopK; ++rank) {
      log_probs.push_back(next.log_prob(0, rank));
      children[static_cast<size_t>(rank)].ranks.push_back(rank);
      children[static_cast<size_t>(rank)].tokens.push_back(next.token(0, rank));
    }
    std::vector<double> scaled(kTopK);
    at_temperature(log_probs, temperatures_[static_cast<size_t>(depth)], scaled);
    for (size_t rank = 0; rank < kTopK; ++rank) {
      children[rank].log_path_prob += scaled[rank];
      all.push_back(children[rank]);
      add_all_paths(children[rank], all);
    }
  }

  /// The paths of a tree, as tokens, sorted.
  static std::vector<std::vector<TokenId>> paths_of(const CandidateTree& tree) {
    std::vector<std::vector<TokenId>> paths(1);
    for (size_t i = 1; i < tree.tokens.size(); ++i) {
      paths.push_back(paths[static_cast<size_t>(tree.parents[i])]);
      paths.back().push_back(tree.tokens[i]);
    }
    paths.erase(paths.begin());
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  Weights weights_ = tiny_weights(1);
  HeadsRunner runner_{
      fixtures::arbitrary_heads(weights_, kHeads, GetParam().first, GetParam().second), weights_,
      kTopK};
  std::vector<double> temperatures_{1.5, 0.8, 2.5};
  std::vector<TokenId> tokens_{5, 6, 7};
  at::Tensor hidden_ = at::randn({64}, at::make_generator<at::CPUGeneratorImpl>(3), at::kFloat);
};

INSTANTIATE_TEST_SUITE_P(Heads, DynamicMedusaDrafters,
                         testing::Values(std::pair<HeadInput, int64_t>(HeadInput::Hidden, 0),
                                         std::pair<HeadInput, int64_t>(HeadInput::Root, 0),
                                         std::pair<HeadInput, int64_t>(HeadInput::Sequential, 0),
                                         std::pair<HeadInput, int64_t>(HeadInput::Root, 32)),
                         [](const auto& each) {
                           return enum_name(each.param.first) +
                                  std::string(each.param.second > 0 ? "_corrected" : "");
                         });

TEST_P(DynamicMedusaDrafters, TheTreeIsTheBestOfAllPathsForEverySize) {
  for (uint64_t seed = 3; seed < 8; ++seed) {
    hidden_ = at::randn({64}, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat);
    std::vector<ScoredPath> all;
    add_all_paths({}, all);
    ASSERT_EQ(all.size(), 4U + 16U + 64U);
    std::sort(all.begin(), all.end(), [](const ScoredPath& a, const ScoredPath& b) {
      return a.log_path_prob != b.log_path_prob ? a.log_path_prob > b.log_path_prob
                                                : comes_before(a.ranks, b.ranks);
    });
    size_t deepest = 0;
    for (int32_t n = 1; n <= 64; ++n) {
      std::vector<std::vector<TokenId>> expected;
      for (size_t i = 0; i + 1 < static_cast<size_t>(n); ++i) expected.push_back(all[i].tokens);
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(paths_of(propose(n)), expected) << n << " nodes, seed " << seed;
      for (const auto& path : expected) deepest = std::max(deepest, path.size());
    }
    EXPECT_EQ(deepest, 3U);
  }
}

TEST_P(DynamicMedusaDrafters, KeepsToDepthAndNodes) {
  EXPECT_EQ(propose(20, 63, 9).size(), 9);
  EXPECT_EQ(propose(20, 1).parents, (std::vector<int32_t>{-1, 0, 0, 0, 0}));  // four drafts
  EXPECT_EQ(propose(64, 2).size(), 1 + 4 + 16);
  for (const auto& tree : {propose(1), propose(20, 0), propose(20, 63, 1)})
    EXPECT_EQ(tree.tokens, (std::vector<TokenId>{7}));
  EXPECT_EQ(propose(20).num_verify, 20);
}

TEST_P(DynamicMedusaDrafters, WithoutTemperaturesTheyAreOne) {
  temperatures_ = {1, 1, 1};
  const CandidateTree expected = propose(30);
  temperatures_ = {};
  EXPECT_EQ(propose(30).tokens, expected.tokens);
  temperatures_ = {1, 1, 0.25};
  EXPECT_NE(propose(30).tokens, expected.tokens);
}

TEST_P(DynamicMedusaDrafters, ProposesOnlyTheRootWithoutAState) {
  hidden_.reset();
  EXPECT_EQ(propose(20).tokens, (std::vector<TokenId>{7}));
}

}  // namespace
}  // namespace medusa
