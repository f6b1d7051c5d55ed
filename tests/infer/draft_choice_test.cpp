#include "infer/draft_models/draft_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "infer/rules/match_rule.h"
#include "tests/infer/toy_model.h"
#include "tests/reference/chi_square.h"

namespace medusa {
namespace {

const std::vector<TokenId> kContext{1, 2, 3};
using fixtures::kWarm;

std::vector<TokenId> ids(const std::vector<DraftedToken>& tokens) {
  std::vector<TokenId> out;
  for (const DraftedToken& token : tokens) out.push_back(token.id);
  return out;
}

TEST(DraftChoice, BestAreTheMostProbable) {
  const std::vector<float> logits = fixtures::toy_logits(kContext);
  const auto chosen = DraftChoice(DraftMode::Best, {}).choose(logits, 3, Random(1), 5, nullptr);
  EXPECT_EQ(ids(chosen), largest_tokens(logits, 3));
  for (const DraftedToken& token : chosen)
    EXPECT_NEAR(token.probability, std::exp(log_probability(logits, token.id)), 1e-6);
}

TEST(DraftChoice, CoupledIsWhatTheMatchRuleDraws) {
  const DraftChoice choice(DraftMode::Coupled, kWarm);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> logits = fixtures::toy_logits(kContext);
    const TokenId drawn =
        draw(target_distribution(logits, kWarm), Random(seed), RandomUse::Accept, 7);
    for (const int32_t count : {1, 3})
      EXPECT_EQ(choice.choose(logits, count, Random(seed), 7, nullptr)[0].id, drawn) << seed;
  }
}

/// Ordered pairs of siblings against drawing without replacement.
TEST(DraftChoice, SiblingsAreDrawnWithoutReplacement) {
  const std::vector<float> logits = fixtures::toy_logits(kContext);
  std::vector<double> p(fixtures::kToyVocab);
  for (const WeightedToken& token : target_distribution(logits, kWarm))
    p[static_cast<size_t>(token.id)] = token.probability;
  const auto n = p.size();
  std::vector<double> expected(n * n);
  for (size_t a = 0; a < n; ++a)
    for (size_t b = 0; b < n; ++b)
      if (a != b) expected[a * n + b] = p[a] * p[b] / (1 - p[a]);
  std::vector<int64_t> counts(n * n);
  const DraftChoice choice(DraftMode::Drawn, kWarm);
  for (uint64_t seed = 0; seed < 8000; ++seed) {
    const auto pair = ids(choice.choose(logits, 2, Random(seed), 3, nullptr));
    ++counts[static_cast<size_t>(pair[0]) * n + static_cast<size_t>(pair[1])];
  }
  EXPECT_GT(reference::chi_square_p(counts, expected), 0.01);
}

TEST(DraftChoice, RowsAreTheDistributionWithoutEarlierSiblings) {
  const std::vector<float> logits = fixtures::toy_logits(kContext);
  std::vector<float> rows;
  const auto chosen = DraftChoice(DraftMode::Drawn, kWarm).choose(logits, 3, Random(4), 3, &rows);
  ASSERT_EQ(rows.size(), 3U * fixtures::kToyVocab);
  std::set<TokenId> gone;
  for (size_t i = 0; i < chosen.size(); ++i) {
    double sum = 0, left = 0;
    for (const WeightedToken& token : target_distribution(logits, kWarm))
      if (!gone.contains(token.id)) left += token.probability;
    for (const WeightedToken& token : target_distribution(logits, kWarm)) {
      const float row = rows[i * fixtures::kToyVocab + static_cast<size_t>(token.id)];
      const double expected = gone.contains(token.id) ? 0 : token.probability / left;
      EXPECT_NEAR(row, expected, 1e-6);
      sum += static_cast<double>(row);
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    gone.insert(chosen[i].id);
  }
}

TEST(DraftChoice, FewerThanAskedWhereFewerArePossible) {
  const SamplingConfig narrow{.temperature = 1, .top_k = 2};
  const auto chosen = DraftChoice(DraftMode::Drawn, narrow)
                          .choose(fixtures::toy_logits(kContext), 5, Random(1), 0, nullptr);
  EXPECT_EQ(chosen.size(), 2U);
}

}  // namespace
}  // namespace medusa
