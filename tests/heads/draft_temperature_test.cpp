#include "heads/draft_temperature.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/random.h"

namespace medusa {
namespace {

std::vector<double> at(std::vector<float> probs, double temperature) {
  for (float& p : probs) p = std::log(p);
  std::vector<double> out(probs.size());
  at_temperature(probs, temperature, out);
  for (double& p : out) p = std::exp(p);
  return out;
}

TEST(DraftTemperature, OneLeavesProbabilitiesAsTheyAre) {
  const auto p = at({0.5F, 0.25F, 0.125F}, 1);
  EXPECT_NEAR(p[0], 0.5, 1e-6);
  EXPECT_NEAR(p[1], 0.25, 1e-6);
  EXPECT_NEAR(p[2], 0.125, 1e-6);
}

TEST(DraftTemperature, TwoTakesRootsOfDraftsAndRest) {
  const auto p = at({0.64F, 0.25F, 0.01F}, 2);  // rest 0.1
  const double sum = 0.8 + 0.5 + 0.1 + std::sqrt(0.1);
  EXPECT_NEAR(p[0], 0.8 / sum, 1e-6);
  EXPECT_NEAR(p[1], 0.5 / sum, 1e-6);
  EXPECT_NEAR(p[2], 0.1 / sum, 1e-6);
}

TEST(DraftTemperature, NoRestIsNoTrouble) {
  EXPECT_NEAR(at({0.75F, 0.25F}, 1)[0], 0.75, 1e-5);
  EXPECT_LE(at({1.0F}, 3)[0], 1.0);
}

/// Drafts 0, 1 and 2 of each of two heads, with probabilities that differ from place to place, and
/// a text that follows them at head k's temperature.
class Drawn {
 public:
  Drawn(const std::vector<double>& temperatures, int64_t n) {
    drafts_.reshape(n, 2, 3);
    const Random random(5);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t head = 0; head < 2; ++head) draw(random, i, head, temperatures);
  }

  /// One answer per position, so that the two heads' texts do not mix.
  std::vector<double> fitted() const {
    TemperatureFit fit(2);
    for (int64_t i = 0; i < drafts_.size(); ++i) {
      HeadDrafts one;
      one.reshape(1, 2, 3);
      std::copy_n(drafts_.tokens.begin() + i * 6, 6, one.tokens.begin());
      std::copy_n(drafts_.log_probs.begin() + i * 6, 6, one.log_probs.begin());
      fit.add_answer(one, std::vector<TokenId>{9, truths_[static_cast<size_t>(2 * i)],
                                               truths_[static_cast<size_t>(2 * i + 1)]});
    }
    return fit.temperatures();
  }

 private:
  void draw(const Random& random, int64_t i, int64_t head,
            const std::vector<double>& temperatures) {
    const auto at = static_cast<size_t>(2 * i + head);
    const auto uniform = [&](uint64_t index) {
      return random.uniform(RandomUse::Init, 2 * i + head, index);
    };
    std::vector<float> log_probs;
    double left = 1;
    for (uint64_t rank = 0; rank < 3; ++rank) {
      const double p = left * (0.2 + 0.6 * uniform(rank));
      left -= p;
      log_probs.push_back(static_cast<float>(std::log(p)));
      drafts_.tokens[3 * at + rank] = static_cast<TokenId>(rank);
      drafts_.log_probs[3 * at + rank] = log_probs.back();
    }
    std::vector<double> scaled(3);
    at_temperature(log_probs, temperatures[static_cast<size_t>(head)], scaled);
    double draw = uniform(7);
    TokenId truth = 0;
    while (truth < 3 && (draw -= std::exp(scaled[static_cast<size_t>(truth)])) >= 0) ++truth;
    truths_.push_back(truth);
  }

  HeadDrafts drafts_;
  std::vector<TokenId> truths_;  // [n, 2]
};

TEST(TemperatureFit, FindsTheTemperatureThatTheTextWasDrawnAt) {
  const auto found = Drawn({1.6, 0.7}, 6000).fitted();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NEAR(found[0], 1.6, 0.1);
  EXPECT_NEAR(found[1], 0.7, 0.05);
}

TEST(TemperatureFit, IsTheLeastMeanLoss) {
  // Four places, drafts .6 and .3: right with the first twice, with the second once, once with
  // none.
  HeadDrafts drafts;
  drafts.reshape(1, 1, 2);
  drafts.tokens = {4, 5};
  drafts.log_probs = {std::log(0.6F), std::log(0.3F)};
  TemperatureFit fit(1);
  for (const TokenId truth : {4, 4, 5, 6}) fit.add_answer(drafts, std::vector<TokenId>{9, truth});
  const double found = fit.temperatures()[0];
  const auto loss = [&](double t) {
    std::vector<double> p(2);
    at_temperature(drafts.log_probs, t, p);
    return -2 * p[0] - p[1] - std::log(1 - std::exp(p[0]) - std::exp(p[1]));
  };
  EXPECT_LT(loss(found), loss(found * 1.01));
  EXPECT_LT(loss(found), loss(found / 1.01));
}

TEST(TemperatureFit, LeavesOutPositionsWithoutATrueTokenForEveryHead) {
  HeadDrafts drafts;
  drafts.reshape(1, 2, 1);
  drafts.tokens = {4, 5};
  drafts.log_probs = {-0.1F, -3};
  TemperatureFit fit(2);
  fit.add_answer(drafts, std::vector<TokenId>{9, 4});
  EXPECT_EQ(fit.temperatures(), (std::vector<double>{1, 1}));
  fit.add_answer(drafts, std::vector<TokenId>{9, 4, 4});
  EXPECT_NEAR(fit.temperatures()[0], 1.0 / 8, 1e-6);  // always right: as sharp as may be
  EXPECT_NEAR(fit.temperatures()[1], 1.0 / 8, 1e-6);  // never: likewise for the rest
}

}  // namespace
}  // namespace medusa
