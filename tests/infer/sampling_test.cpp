#include "infer/sampling.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backbone/cpu/threads/thread_pool.h"
#include "base/error.h"
#include "tests/reference/chi_square.h"
#include "tests/reference/distribution.h"

namespace medusa {
namespace {

std::vector<float> random_logits(size_t size, uint64_t seed) {
  std::vector<float> logits;
  for (size_t i = 0; i < size; ++i)
    logits.push_back(static_cast<float>(12 * Random(seed).uniform(RandomUse::Init, 0, i) - 6));
  return logits;
}

/// Logits of a few values only, so that tokens tie within and across the filters' bounds.
std::vector<float> tied_logits(size_t size, uint64_t seed) {
  std::vector<float> logits = random_logits(size, seed);
  for (float& logit : logits) logit = std::round(logit / 2);
  return logits;
}

void expect_same(const std::vector<WeightedToken>& tokens,
                 const std::map<TokenId, double>& expected, const std::string& what) {
  ASSERT_EQ(tokens.size(), expected.size()) << what;
  for (const WeightedToken& token : tokens) {
    const auto found = expected.find(token.id);
    ASSERT_NE(found, expected.end()) << what << ", token " << token.id;
    EXPECT_NEAR(token.probability / found->second, 1, 3e-5) << what << ", token " << token.id;
  }
}

TEST(Sampling, ArgmaxIsTheFirstOfEquals) {
  EXPECT_EQ(argmax(std::vector<float>{1, 3, 2, 3}), 1);
  EXPECT_EQ(argmax(std::vector<float>(40, 0)), 0);
  std::vector<float> late(40, -1);
  late[37] = late[38] = 2;
  EXPECT_EQ(argmax(late), 37);
}

// A damaged model's. The user can get the file again.
TEST(Sampling, LogitsThatAreNotFiniteAreTheModelsFault) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const Random random(1);
  for (const std::vector<float>& logits :
       {std::vector<float>(40, nan), std::vector<float>(40, -nan),
        std::vector<float>(40, -infinity), std::vector<float>{0, 1, infinity, 2}}) {
    EXPECT_THROW(argmax(logits), UserError);
    for (const SamplingConfig& config :
         {SamplingConfig{.temperature = 1}, SamplingConfig{.temperature = 1, .top_k = 3},
          SamplingConfig{.temperature = 1, .top_p = 0.5},
          SamplingConfig{.temperature = 1, .top_k = 3, .top_p = 0.5}})
      EXPECT_THROW(sample(logits, config, random, RandomUse::Accept, 0), UserError);
  }
}

TEST(Sampling, OneLogitThatIsNoNumberIsRefusedBeforeItIsDrawn) {
  const float nan = std::nanf("");
  std::vector<float> late(40, 1);
  late[20] = nan;
  for (const std::vector<float>& logits : {std::vector<float>{0, 1, nan, 2}, late})
    for (const SamplingConfig& config :
         {SamplingConfig{.temperature = 1}, SamplingConfig{.temperature = 1, .top_k = 3},
          SamplingConfig{.temperature = 1, .top_p = 0.5}})
      EXPECT_THROW(sample(logits, config, Random(1), RandomUse::Accept, 0), UserError);
}

TEST(Sampling, LogProbabilityIsTheLogSoftmax) {
  const std::vector<float> logits = random_logits(1000, 1);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  for (const TokenId id : {0, 500, 999})
    EXPECT_NEAR(log_probability(logits, id),
                static_cast<double>(logits[static_cast<size_t>(id)]) - std::log(sum), 1e-5);
}

TEST(Sampling, LargestTokensComeBestFirstAndByIdAmongEquals) {
  const std::vector<float> logits{1, 5, 2, 5, 0, 2};
  EXPECT_EQ(largest_tokens(logits, 4), (std::vector<TokenId>{1, 3, 2, 5}));
  EXPECT_EQ(largest_tokens(logits, 99), (std::vector<TokenId>{1, 3, 2, 5, 0, 4}));
  EXPECT_THROW(largest_tokens(logits, 0), std::logic_error);
}

TEST(Sampling, DistributionAgreesWithSortingInDouble) {
  struct NamedRow {
    std::vector<float> logits;
    const char* name;
  };
  const std::vector<NamedRow> rows{{{0.5F}, "one token"},
                                   {random_logits(7, 1), "seven"},
                                   {random_logits(100, 2), "hundred"},
                                   {tied_logits(100, 3), "hundred with ties"},
                                   {std::vector<float>(20, 1), "all equal"},
                                   {random_logits(50000, 4), "fifty thousand"}};
  int64_t compared = 0;
  for (const NamedRow& row : rows)
    for (const double temperature : {0.3, 0.7, 1.0, 2.0})
      for (const int64_t top_k : {0, 1, 5, 40, 1000})
        for (const double top_p : {1.0, 0.95, 0.5, 0.1, 1e-9})
          for (const double min_p : {0.0, 0.01, 0.35}) {
            const SamplingConfig config{temperature, top_k, top_p, min_p};
            const auto expected = reference::distribution(row.logits, config);
            if (expected.margin < 1e-6) continue;  // rounding may decide about one token
            expect_same(target_distribution(row.logits, config), expected.probabilities,
                        std::string(row.name) + ", temperature " + std::to_string(temperature) +
                            ", top-k " + std::to_string(top_k) + ", top-p " +
                            std::to_string(top_p) + ", min-p " + std::to_string(min_p));
            ++compared;
          }
  EXPECT_GT(compared, 1620);  // of 1800
}

// 1 / temperature is no finite float here, or is 0. The model is not at fault.
TEST(Sampling, TemperaturesTooSmallToDivideByGiveTheMostProbableToken) {
  const std::vector<float> logits = random_logits(3000, 9);
  for (const double temperature : {1e-30, 1e-39, 1e-45, 1e-300, 5e-324})
    for (const SamplingConfig& config :
         {SamplingConfig{temperature}, SamplingConfig{temperature, 3},
          SamplingConfig{temperature, 0, 0.5}, SamplingConfig{temperature, 0, 1, 0.1}}) {
      const auto distribution = target_distribution(logits, config);
      ASSERT_EQ(distribution.size(), 1) << temperature;
      EXPECT_EQ(distribution[0].id, argmax(logits)) << temperature;
      EXPECT_EQ(sample(logits, config, Random(1), RandomUse::Accept, 7), argmax(logits))
          << temperature;
    }
}

TEST(Sampling, TemperaturesWithoutAnInverseKeepMaskedTokensOut) {
  std::vector<float> logits(40, -std::numeric_limits<float>::infinity());
  logits[3] = 1;
  logits[5] = 2;
  for (const double temperature : {1e39, 1e300}) {
    const auto distribution = target_distribution(logits, {temperature});
    ASSERT_EQ(distribution.size(), 2) << temperature;
    for (const WeightedToken& token : distribution) EXPECT_NEAR(token.probability, 0.5, 1e-6);
  }
}

TEST(Sampling, DistributionIsOrderedAsDocumented) {
  const std::vector<float> logits = tied_logits(50, 5);
  const auto by_id = [](const WeightedToken& a, const WeightedToken& b) { return a.id < b.id; };
  const auto by_probability = [](const WeightedToken& a, const WeightedToken& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
  };
  for (const double min_p : {0.0, 0.3}) {
    const auto all = target_distribution(logits, {0.8, 0, 1, min_p});
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), by_id));
  }
  for (const SamplingConfig& config : {SamplingConfig{0.8, 9, 1}, {0.8, 0, 0.7}, {0.8, 20, 0.7}}) {
    const auto kept = target_distribution(logits, config);
    EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(), by_probability));
  }
}

TEST(Sampling, TokensThatCannotComeAreLeftOut) {
  const float never = -std::numeric_limits<float>::infinity();
  const std::vector<float> logits{never, 1, never, 1, -500};
  for (const SamplingConfig& config : {SamplingConfig{1, 0, 1}, {1, 4, 1}, {1, 0, 0.999999}}) {
    const auto tokens = target_distribution(logits, config);
    ASSERT_EQ(tokens.size(), 2U);
    EXPECT_EQ(tokens[0].id, 1);
    EXPECT_EQ(tokens[1].id, 3);
    EXPECT_EQ(tokens[0].probability, 0.5);
  }
}

/// p of the chi-square test of draws at positions 0, 1, … against a distribution.
double draw_p(const std::vector<WeightedToken>& tokens, size_t vocabulary, uint64_t seed,
              const std::vector<WeightedToken>& claimed) {
  std::vector<int64_t> counts(vocabulary, 0);
  std::vector<double> probabilities(vocabulary, 0);
  for (int64_t position = 0; position < 20000; ++position)
    ++counts.at(static_cast<size_t>(draw(tokens, Random(seed), RandomUse::Accept, position)));
  for (const WeightedToken& token : claimed)
    probabilities[static_cast<size_t>(token.id)] = token.probability;
  return reference::chi_square_p(counts, probabilities);
}

TEST(Sampling, DrawsHaveTheDistribution) {
  for (const uint64_t seed : {1, 2, 3}) {
    const std::vector<float> logits = random_logits(30, seed);
    for (const SamplingConfig& config :
         {SamplingConfig{1, 0, 1}, {0.5, 0, 1}, {2, 8, 1}, {1.5, 0, 0.8}}) {
      const auto tokens = target_distribution(logits, config);
      EXPECT_GT(draw_p(tokens, 30, seed, tokens), 0.01);
    }
  }
}

TEST(Sampling, TheTestOfDrawsNoticesAWrongDistribution) {
  const std::vector<float> logits = random_logits(30, 1);
  const auto tokens = target_distribution(logits, {1, 0, 1});
  EXPECT_LT(draw_p(tokens, 30, 1, target_distribution(logits, {1.1, 0, 1})), 1e-6);
  EXPECT_LT(draw_p(tokens, 30, 1, target_distribution(logits, {1, 0, 0.95})), 1e-6);
}

TEST(Sampling, ADrawDependsOnItsPositionAndNotOnOrder) {
  auto tokens = target_distribution(random_logits(30, 2), {1, 0, 1});
  auto reversed = tokens;
  std::reverse(reversed.begin(), reversed.end());
  std::vector<TokenId> forwards, backwards;
  for (int64_t position = 0; position < 200; ++position)
    forwards.push_back(draw(tokens, Random(5), RandomUse::Accept, position));
  for (int64_t position = 199; position >= 0; --position)
    backwards.push_back(draw(reversed, Random(5), RandomUse::Accept, position));
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(forwards, backwards);
  std::vector<TokenId> other_use, other_seed;
  for (int64_t position = 0; position < 200; ++position) {
    other_use.push_back(draw(tokens, Random(5), RandomUse::Draft, position));
    other_seed.push_back(draw(tokens, Random(6), RandomUse::Accept, position));
  }
  EXPECT_NE(forwards, other_use);
  EXPECT_NE(forwards, other_seed);
}

TEST(Sampling, ADrawThatTheFiltersKeepIsTheDrawWithoutThem) {
  // The race among fewer tokens has the same winner, unless the winner was filtered out.
  const std::vector<float> logits = random_logits(30, 3);
  const auto all = target_distribution(logits, {1, 0, 1});
  const auto kept = target_distribution(logits, {1, 6, 1});
  int64_t same = 0;
  for (int64_t position = 0; position < 500; ++position) {
    const TokenId free = draw(all, Random(1), RandomUse::Accept, position);
    const bool stays =
        std::any_of(kept.begin(), kept.end(), [&](const auto& t) { return t.id == free; });
    if (!stays) continue;
    EXPECT_EQ(draw(kept, Random(1), RandomUse::Accept, position), free);
    ++same;
  }
  EXPECT_GT(same, 250);
}

TEST(Sampling, ASampleIsTheDrawFromTheWholeList) {
  // Above, at and below a block of the race; a flat distribution and a steep one.
  for (const size_t vocabulary : {1U, 7U, 256U, 257U, 5000U}) {
    std::vector<float> logits = random_logits(vocabulary, vocabulary);
    if (vocabulary > 7) logits[3] = -std::numeric_limits<float>::infinity();
    for (const SamplingConfig& config : {SamplingConfig{1, 0, 1},
                                         {0.2, 0, 1},
                                         {50, 0, 1},
                                         {1, 5, 1},
                                         {1, 0, 0.8},
                                         {1, 0, 1, 0.1}}) {
      const auto tokens = target_distribution(logits, config);
      for (int64_t position = 0; position < 200; ++position)
        ASSERT_EQ(sample(logits, config, Random(4), RandomUse::Accept, position),
                  draw(tokens, Random(4), RandomUse::Accept, position))
            << vocabulary << " tokens, temperature " << config.temperature << ", " << position;
    }
  }
}

TEST(Sampling, IdleThreadsChangeNothing) {
  ThreadPool pool(3);
  for (const size_t vocabulary : {7U, 5000U, 50000U}) {
    const std::vector<float> logits = tied_logits(vocabulary, vocabulary);
    for (const SamplingConfig& config : {SamplingConfig{1, 0, 1},
                                         {0.7, 40, 1},
                                         {0.7, 0, 0.95},
                                         {0.7, 1000, 0.5},
                                         {0.7, 0, 1, 0.05}}) {
      const auto alone = target_distribution(logits, config);
      const auto helped = target_distribution(logits, config, &pool);
      ASSERT_EQ(alone.size(), helped.size());
      for (size_t i = 0; i < alone.size(); ++i) {
        ASSERT_EQ(alone[i].id, helped[i].id);
        ASSERT_EQ(alone[i].probability, helped[i].probability);
      }
      for (int64_t position = 0; position < 20; ++position)
        ASSERT_EQ(sample(logits, config, Random(4), RandomUse::Accept, position),
                  sample(logits, config, Random(4), RandomUse::Accept, position, &pool));
    }
  }
}

TEST(Sampling, LogitsRowReadsViewsOfRows) {
  const at::Tensor logits = at::arange(12, at::kFloat).view({4, 3});
  const at::Tensor part = logits.narrow(0, 1, 3);
  const auto row = logits_row(part, 1);
  EXPECT_EQ(std::vector<float>(row.begin(), row.end()), (std::vector<float>{6, 7, 8}));
  EXPECT_THROW(logits_row(logits.t(), 0), std::logic_error);
  EXPECT_THROW(logits_row(logits.to(at::kBFloat16), 0), std::logic_error);
}

}  // namespace
}  // namespace medusa
