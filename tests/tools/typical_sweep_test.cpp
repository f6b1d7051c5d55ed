#include "tools/measure/typical_sweep.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "infer/drafter.h"
#include "infer/rules/match_rule.h"
#include "tests/runtime/story_model.h"

namespace medusa {
namespace {

TypicalPoint point(double speedup, double surprisal) {
  return {0.1, 0.3, {speedup, speedup, speedup}, {surprisal, surprisal, surprisal}, 0, 1};
}

TEST(ChoosePoint, TakesTheFastestOfThoseAsProbableAsPlainSampling) {
  const Estimate plain{2, 1.5, 2.5};
  EXPECT_EQ(choose_point(std::vector{point(1.2, 1.8), point(1.6, 2.4), point(1.9, 2.6)}, plain),
            1U);
  EXPECT_EQ(choose_point(std::vector{point(1.9, 2.8), point(1.2, 2.6)}, plain), 1U)
      << "none is: the most probable";
}

class TextScoreTest : public testing::Test {
 protected:
  TextScoreTest() : model_(Model::load(fixtures::kStoryModel, fixtures::story_options())) {}

  /// What plain sampling writes.
  SampledText sampled(uint64_t seed) {
    SampledText text{model_.encode({{"user", "Once upon a time"}}), {}, {}, seed};
    DecodeRequest request;
    request.prompt = text.prompt;
    request.limits.max_new_tokens = 40;
    request.random = Random(seed);
    request.emit = [&](const EmittedToken& token) {
      text.tokens.push_back(token.id);
      return true;
    };
    BackboneTarget target(*model_.llama, 1, model_.context);
    decode_one(
        target, MatchRule(sampling_), [] { return std::make_unique<NoneDrafter>(); },
        std::move(request));
    text.drafted.assign(text.tokens.size(), false);
    return text;
  }

  Model model_;
  SamplingConfig sampling_{.temperature = 0.7};
};

TEST_F(TextScoreTest, PlainSamplingAgreesWithItselfAndIsAtNoDistance) {
  BackboneTarget target(*model_.llama, 1, model_.context);
  const SampledText text = sampled(5);
  const TextScore score = score_text(target, text, sampling_);
  EXPECT_EQ(score.tokens, 40);
  EXPECT_EQ(score.agreed, 40);
  EXPECT_EQ(score.kl, 0);
  SampledText other = text;
  other.seed = 6;
  EXPECT_LT(score_text(target, other, sampling_).agreed, 40) << "other draws";
}

TEST_F(TextScoreTest, SurprisalIsThatOfTheLogitsAtTheTemperature) {
  BackboneTarget target(*model_.llama, 1, model_.context);
  SampledText text = sampled(5);
  double expected = 0, of_drafted = 0;
  for (size_t i = 0; i < text.tokens.size(); ++i) text.drafted[i] = i % 3 == 0;
  {
    Follower follower(target, text.prompt);
    for (size_t i = 0; i < text.tokens.size(); ++i) {
      const at::Tensor logits = follower.predict(std::span(text.tokens).subspan(i, 1));
      const double surprisal =
          -at::log_softmax(logits.to(at::kDouble) / 0.7, -1)[0][text.tokens[i]].item<double>();
      expected += surprisal;
      if (text.drafted[i]) of_drafted += surprisal;
    }
  }
  const TextScore score = score_text(target, text, sampling_);
  EXPECT_NEAR(score.surprisal, expected, 1e-3);
  EXPECT_NEAR(score.kl, of_drafted, 1e-3);
}

}  // namespace
}  // namespace medusa
