#include "tools/measure/layer_search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/backbone/tiny_model.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

TEST(LayerSearch, TheGainIsThatOfTheBestChain) {
  const StepCost flat;  // rows cost nothing
  const LayerChoice free = expected_gain(0.5, 1e-9, flat);
  EXPECT_NEAR(free.speedup, 2, 1e-3) << "1 + 1/2 + 1/4 + …";
  const LayerChoice two = expected_gain(0.8, 0.3, flat);
  double best = 0;
  int32_t best_n = 0;
  for (int32_t n = 1; n <= 16; ++n) {
    const double gain = (1 - std::pow(0.8, n + 1)) / (1 - 0.8) / (n * 0.3 + 1);
    if (gain > best) best_n = n;
    best = std::max(best, gain);
  }
  EXPECT_NEAR(two.speedup, best, 1e-12);
  EXPECT_EQ(two.num_draft, best_n);
  EXPECT_LT(expected_gain(0.2, 0.9, flat).speedup, 1) << "a draft that is dear and wrong";
}

/// Five layers, of which two add nothing to what passes through them.
Weights with_idle_layers() {
  ModelConfig config = tiny_config();
  config.num_layers = 5;
  Weights weights = tiny_weights(4, config);
  for (const size_t layer : {1, 3}) {
    weights.layers[layer].output.zero_();
    weights.layers[layer].down.zero_();
  }
  return weights;
}

TEST(LayerSearch, LayersThatDoNothingAreSkippedFirst) {
  Llama llama(with_idle_layers());
  const std::vector<AnsweredText> texts{{random_tokens(1, 40), 12}, {random_tokens(2, 30), 1}};
  const StepCost flat;
  const LayerChoice choice = search_layers(llama, texts, {.layer = 0.15, .pass = flat});
  EXPECT_EQ(choice.skip, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(choice.agreement, 1);
  EXPECT_DOUBLE_EQ(choice.cost, 0.7);
  EXPECT_EQ(choice.num_draft, 16);
  EXPECT_EQ(choice.backbone, llama.weights().fingerprint);
}

TEST(LayerSearch, OnlyTheAnswerCounts) {
  Llama llama(with_idle_layers());
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const std::vector<AnsweredText> one_place{{random_tokens(seed, 40), 39}};
    const double agreement =
        search_layers(llama, one_place, {.layer = 0.249, .pass = {}}).agreement;
    EXPECT_TRUE(agreement == 0 || agreement == 1) << agreement;
  }
}

TEST(LayerSearch, AModelOfOneLayerHasNoneToSkip) {
  ModelConfig config = tiny_config();
  config.num_layers = 1;
  Llama llama(tiny_weights(4, config));
  EXPECT_EQ(fixtures::error_text([&] { time_layers(llama); }),
            "backbone.model: it has 1 layer, expected at least 2, of which some may be left out; "
            "use another drafter than layer_skip");
}

}  // namespace
}  // namespace medusa
