#include "train/joint/trainable_llama.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "backbone/llama.h"
#include "tests/backbone/tiny_model.h"

namespace medusa {
namespace {

ModelConfig four_layers(bool bias) {
  ModelConfig config = tiny_config();
  config.num_layers = 4;
  config.qkv_bias = bias;
  return config;
}

/// The states of a text by the backbone's own path.
at::Tensor backbone_states(const Weights& weights, const std::vector<TokenId>& text,
                           const std::vector<int32_t>& layers) {
  Llama llama(weights, Kernels::Reference);
  KvCache cache = llama.make_cache(1, 64);
  const Segment segment{cache.open(), text, {}};
  return llama.forward({&segment, 1}, cache, layers).clone();
}

TEST(TrainableLlama, IsTheBackboneWithTheseLayersOnEachPackedText) {
  for (const ModelConfig& config : {four_layers(false), four_layers(true), uneven_config()}) {
    const Weights weights = tiny_weights(3, config);
    const std::vector<int64_t> layers{0, 1, 3};
    const TrainableLlama cut(weights, layers);
    const std::vector<TokenId> first = random_tokens(1, 20), second = random_tokens(2, 9);
    std::vector<TokenId> both = first;
    both.insert(both.end(), second.begin(), second.end());
    const c10::NoGradGuard no_grad;
    const at::Tensor states = cut.forward(both, std::vector<int64_t>{20, 9});
    const at::Tensor expected = at::cat(
        {backbone_states(weights, first, {0, 1, 3}), backbone_states(weights, second, {0, 1, 3})});
    EXPECT_TRUE(at::allclose(states, expected, 1e-4, 1e-5))
        << (states - expected).abs().max().item<double>();
  }
}

TEST(TrainableLlama, ItsWeightsRunAsAModel) {
  for (const ModelConfig& config : {four_layers(true), uneven_config()}) {
    const Weights weights = tiny_weights(3, config);
    const TrainableLlama cut(weights, std::vector<int64_t>{1, 3});
    const Weights alone = cut.weights();
    EXPECT_EQ(alone.config.num_layers, 2);
    const std::vector<TokenId> text = random_tokens(1, 20);
    EXPECT_TRUE(at::allclose(backbone_states(alone, text, {}),
                             backbone_states(weights, text, {1, 3}), 1e-6, 1e-7));
  }
}

TEST(TrainableLlama, GradientsAreTheNumericOnes) {
  const Weights weights = tiny_weights(3, four_layers(true));
  const TrainableLlama cut(weights, std::vector<int64_t>{1, 2});
  const std::vector<TokenId> text = random_tokens(1, 14);
  const std::vector<int64_t> lengths{8, 6};
  const at::Tensor weight = at::linspace(-1, 1, 14 * 64).reshape({14, 64});
  const auto value = [&] { return (cut.forward(text, lengths) * weight).sum(); };
  {
    const c10::AutoGradMode grad(true);
    value().backward();
  }
  const c10::NoGradGuard no_grad;
  for (const auto& [name, parameter] : cut.named_parameters()) {
    ASSERT_TRUE(parameter.grad().defined()) << name;
    // Along the gradient itself, where the change is largest and float32 sees it best.
    const at::Tensor direction = parameter.grad() / parameter.grad().norm();
    const double step = 1e-3 * parameter.norm().item<double>();
    at::Tensor values = parameter;
    values.add_(direction, step);
    const double above = value().item<double>();
    values.sub_(direction, 2 * step);
    const double below = value().item<double>();
    values.add_(direction, step);
    const double expected = parameter.grad().norm().item<double>();
    EXPECT_NEAR((above - below) / (2 * step), expected, 0.02 * expected) << name;
  }
}

}  // namespace
}  // namespace medusa
