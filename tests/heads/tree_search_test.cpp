#include "heads/tree/tree_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/heads/random_statistics.h"
#include "tests/reference/all_trees.h"

namespace medusa {
namespace {

std::vector<RankPath> paths_of(const std::vector<PathValue>& values, size_t n) {
  std::vector<RankPath> paths;
  for (size_t i = 0; i < n; ++i) paths.push_back(values[i].path);
  return paths;
}

TEST(TreeSearch, IsAsGoodAsTryingAllTrees) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const HeadStatistics statistics = random_statistics(3, 3, 8, 30, seed);
    const auto best = rank_paths(statistics, 6, /*smoothing=*/0);
    ASSERT_EQ(best.size(), 6U);
    std::vector<double> expected{1};
    for (const PathValue& path : best) expected.push_back(expected.back() + path.probability);
    for (size_t n = 0; n <= 5; ++n) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << n << " paths");
      EXPECT_NEAR(expected[n], reference::best_of_all_trees(statistics, n), 1e-12);
      const auto paths = paths_of(best, n);
      EXPECT_NEAR(reference::tokens_per_step(statistics, {paths.begin(), paths.end()}), expected[n],
                  1e-12);
    }
  }
}

TEST(TreeSearch, EverySizeIsACompleteTree) {
  const auto best = rank_paths(random_statistics(4, 10, 10, 60, 3), 63);
  ASSERT_EQ(best.size(), 63U);
  for (size_t n = 0; n <= best.size(); ++n)
    EXPECT_NO_THROW(make_choice_tree(paths_of(best, n), 10, "test")) << n;
  for (size_t i = 1; i < best.size(); ++i)
    EXPECT_GE(best[i - 1].probability, best[i].probability) << i;
}

TEST(TreeSearch, ListsEveryPathAtMost) {
  EXPECT_EQ(rank_paths(random_statistics(3, 2, 4, 20, 3), 100).size(), 14U);  // 2 + 4 + 8
}

TEST(TreeSearch, SmoothingGoesFromJointCountsToTheProductOfMarginals) {
  const HeadStatistics statistics = random_statistics(2, 2, 10, 50, 9);
  const auto heads = statistics.head_counts();
  const double positions = static_cast<double>(statistics.num_positions());
  for (const double smoothing : {0.0, 20.0, 1e12}) {
    for (const PathValue& value : rank_paths(statistics, 6, smoothing)) {
      if (value.path.size() < 2) continue;
      const auto a = static_cast<size_t>(value.path[0]), b = static_cast<size_t>(value.path[1]);
      const double first = static_cast<double>(heads[0][a]) / positions;
      const double second = static_cast<double>(heads[1][b]) / positions;
      const double joint = static_cast<double>(value.count) / positions;
      if (smoothing == 0.0) {
        EXPECT_NEAR(value.probability, joint, 1e-12);
      }
      if (smoothing == 1e12) {
        EXPECT_NEAR(value.probability, first * second, 1e-6);
      }
      EXPECT_GE(value.probability, std::min(joint, first * second) - 1e-12);
      EXPECT_LE(value.probability, std::max(joint, first * second) + 1e-12);
    }
  }
}

TEST(TreeSearch, MeasuredTokensAgreeWithCountingAndTheIntervalHoldsThem) {
  const HeadStatistics statistics = random_statistics(3, 4, 30, 40, 11);
  const auto paths = paths_of(rank_paths(statistics, 12), 12);
  const Estimate estimate = measure_tree(statistics, paths, StepStarts::Everywhere, Random(1));
  EXPECT_NEAR(estimate.value, reference::tokens_per_step(statistics, {paths.begin(), paths.end()}),
              1e-12);
  EXPECT_LT(estimate.low, estimate.value);
  EXPECT_GT(estimate.high, estimate.value);
  const Estimate again = measure_tree(statistics, paths, StepStarts::Everywhere, Random(1));
  EXPECT_EQ(again.low, estimate.low);
  EXPECT_EQ(again.high, estimate.high);
}

TEST(TreeSearch, IntervalHasTheWidthOfTheStandardError) {
  // One position per answer, right with probability about one half: a plain proportion.
  HeadStatistics statistics(1, 1);
  int right = 0;
  for (int i = 0; i < 400; ++i) {
    const bool hit = Random(3).uniform(RandomUse::Init, i) < 0.5;
    right += hit ? 1 : 0;
    statistics.add_answer({{hit ? 2 : 3}}, {{1, 2}});
  }
  const double p = right / 400.0, width = 2 * 1.96 * std::sqrt(p * (1 - p) / 400);
  const Estimate estimate = measure_tree(statistics, {{0}}, StepStarts::Everywhere, Random(5));
  EXPECT_NEAR(estimate.value, 1 + p, 1e-12);
  EXPECT_NEAR(estimate.high - estimate.low, width, 0.1 * width);
}

TEST(TreeSearch, AReplayBeginsEachStepWhereTheOneBeforeEnded) {
  HeadStatistics statistics(2, 2);
  // Ranks of heads 0 and 1 at positions 0 to 4: [0 0] [1 -] [- -] [0 1] [0 0].
  const std::vector<TokenId> drafts{1, 9, 2, 9, /**/ 9, 2, 9,      9, /**/ 9, 9,
                                    9, 9, 4, 9, 9,      5, /**/ 5, 9, 6,      9};
  statistics.add_answer(drafts, std::vector<TokenId>{0, 1, 2, 3, 4, 5, 6});
  const std::vector<RankPath> tree{{0}, {0, 0}};
  // Every position: 3, 1, 1, 2 and 3 tokens. Replayed: 3 at position 0, then 2 at 3.
  EXPECT_DOUBLE_EQ(tokens_per_step(statistics, tree, StepStarts::Everywhere), 10.0 / 5);
  EXPECT_DOUBLE_EQ(tokens_per_step(statistics, tree, StepStarts::Replayed), 5.0 / 2);
  EXPECT_DOUBLE_EQ(measure_tree(statistics, tree, StepStarts::Replayed, Random(1)).value, 2.5);
  EXPECT_DOUBLE_EQ(tokens_per_step(statistics, {}, StepStarts::Replayed), 1);
}

// Steps that stop at hard places begin the next one there.
TEST(TreeSearch, AReplayGivesLessWhereHardPlacesLieTogether) {
  HeadStatistics statistics(1, 1);
  for (uint64_t a = 0; a < 50; ++a) {
    std::vector<TokenId> answer(101, 1), drafts;
    bool hard = false;
    for (int64_t i = 0; i < 100; ++i) {
      const Random random = Random(7).child(a);
      if (random.uniform(RandomUse::Init, i) < 0.1) hard = !hard;
      drafts.push_back(random.uniform(RandomUse::Draft, i) < (hard ? 0.1 : 0.9) ? 1 : 0);
    }
    statistics.add_answer(drafts, answer);
  }
  EXPECT_LT(tokens_per_step(statistics, {{0}}, StepStarts::Replayed),
            tokens_per_step(statistics, {{0}}, StepStarts::Everywhere) - 0.05);
}

TEST(TreeSearch, ChoosesMostTokensPerSecondAndTheSmallerOfEqualTrees) {
  const std::vector<TreeSizePoint> sizes{{1, 1.0, 10}, {8, 1.8, 12}, {16, 2.1, 14}, {64, 2.4, 24}};
  EXPECT_EQ(choose_size(sizes).num_nodes, 8);  // both 0.15 tokens per ms
  EXPECT_EQ(choose_size({{1, 1.0, 10}, {64, 1.5, 30}}).num_nodes, 1);
  EXPECT_EQ(choose_size({{16, 2.1, 14}, {8, 1.8, 12}}).num_nodes, 8);
}

}  // namespace
}  // namespace medusa
