#include "train/joint/tuned_llama.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "backbone/llama.h"
#include "tests/base/error_text.h"
#include "tests/train/tiny_joint.h"
#include "train/joint/trainable_llama.h"

namespace medusa {
namespace {

std::vector<TokenId> some_tokens(int64_t count, uint64_t seed) {
  std::vector<TokenId> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<TokenId>(Random(seed).bits(RandomUse::Init, i) % 130));
  return out;
}

at::Tensor states_of(const Weights& weights, const std::vector<TokenId>& text) {
  Llama llama(weights, Kernels::Reference);
  KvCache cache = llama.make_cache(1, 64);
  const Segment segment{cache.open(), text, {}};
  return llama.forward({&segment, 1}, cache).clone();
}

Weights four_layers() {
  ModelConfig config = tiny_config();
  config.num_layers = 4;
  config.qkv_bias = true;
  return tiny_weights(3, config);
}

std::vector<Weights> both_models() { return {four_layers(), tiny_weights(3, uneven_config())}; }

void change(const TunedLlama& llama) {
  const c10::NoGradGuard no_grad;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(4);
  for (const auto& [name, tensor] : llama.named_parameters())
    at::Tensor(tensor).add_(at::randn(tensor.sizes(), generator, at::kFloat), 0.05);
}

std::vector<JointConfig> all_parts() {
  std::vector<JointConfig> configs(3);
  configs[0].lora.targets = all_targets();
  configs[1].part = TrainedPart::LastLayers;
  configs[1].last_layers = 2;
  configs[2].part = TrainedPart::AllLayers;
  return configs;
}

TEST(TunedLlama, BeginsAsTheBackbone) {
  const std::vector<TokenId> text = some_tokens(20, 1);
  for (const Weights& weights : both_models())
    for (const JointConfig& config : all_parts()) {
      const at::Tensor expected = states_of(weights, text);
      TunedLlama llama(weights, config, 1);
      const PackedTexts texts = llama.pack(text, std::vector<int64_t>{20});
      EXPECT_TRUE(at::allclose(llama.forward(texts, std::nullopt), expected, 1e-4, 1e-5));
      EXPECT_TRUE(at::equal(llama.forward(texts, std::nullopt), llama.forward_original(texts)));
      EXPECT_TRUE(at::equal(llama.lm_head(), weights.lm_head));
    }
}

TEST(TunedLlama, ItsMergedWeightsAreTheModelThatWasTrained) {
  const std::vector<TokenId> text = some_tokens(20, 1);
  for (const Weights& weights : both_models())
    for (const JointConfig& config : all_parts()) {
      const at::Tensor original = states_of(weights, text);
      TunedLlama llama(weights, config, 1);
      change(llama);
      const PackedTexts texts = llama.pack(text, std::vector<int64_t>{20});
      const Weights merged = llama.merged();
      const at::Tensor expected = llama.forward(texts, std::nullopt);
      EXPECT_TRUE(at::allclose(states_of(merged, text), expected, 1e-3, 1e-4));
      EXPECT_FALSE(at::allclose(expected, original, 1e-2, 1e-2));
      EXPECT_TRUE(at::allclose(merged.lm_head, llama.lm_head()));
      // A tied LM head with an adapter is tied no more, and the embedding is untouched.
      EXPECT_EQ(merged.config.tied_output, config.part != TrainedPart::Lora);
      EXPECT_TRUE(merged.embedding.is_same(weights.embedding));
      // The one as it was is still there, which is the teacher.
      EXPECT_TRUE(at::allclose(llama.forward_original(texts), original, 1e-4, 1e-5));
      EXPECT_TRUE(at::equal(states_of(weights, text), original));
    }
}

/// The gradient that recomputation gives is that of a graph over all layers.
TEST(TunedLlama, RecomputationGivesTheGradientsOfTheWholeGraph) {
  const Weights weights = four_layers();
  JointConfig config;
  config.part = TrainedPart::AllLayers;
  TunedLlama llama(weights, config, 1);
  const std::vector<TokenId> text = some_tokens(14, 1);
  const std::vector<int64_t> lengths{8, 6};
  const at::Tensor gradient = at::linspace(-1, 1, 14 * 64).reshape({14, 64});
  llama.forward(llama.pack(text, lengths), std::nullopt);
  llama.backward(gradient);

  const TrainableLlama whole(weights, std::vector<int64_t>{0, 1, 2, 3});
  const c10::AutoGradMode grad(true);
  whole.forward(text, lengths).backward(gradient);
  const NamedTensors found = llama.named_parameters(), expected = whole.named_parameters();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(found[i].second.grad().defined()) << found[i].first;
    EXPECT_TRUE(at::allclose(found[i].second.grad(), expected[i].second.grad(), 1e-4, 1e-5))
        << found[i].first;
  }
}

TEST(TunedLlama, FrozenLayersBelowAreNotGoneThroughAgain) {
  JointConfig config;
  config.part = TrainedPart::LastLayers;
  config.last_layers = 1;
  const TunedLlama llama(four_layers(), config, 1);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : llama.named_parameters()) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"layers.3.attention_norm", "layers.3.qkv",
                                      "layers.3.qkv_bias", "layers.3.output", "layers.3.mlp_norm",
                                      "layers.3.gate_up", "layers.3.down", "final_norm"}));
}

TEST(TunedLlama, DropoutIsTheSameForTheSameStep) {
  const Weights weights = four_layers();
  JointConfig config;
  config.lora.dropout = 0.5;
  TunedLlama llama(weights, config, 1);
  change(llama);
  const PackedTexts texts = llama.pack(some_tokens(10, 1), std::vector<int64_t>{10});
  const at::Tensor first = llama.forward(texts, Random(1).child(0));
  EXPECT_TRUE(at::equal(first, llama.forward(texts, Random(1).child(0))));
  EXPECT_FALSE(at::equal(first, llama.forward(texts, Random(1).child(1))));
  EXPECT_FALSE(at::equal(first, llama.forward(texts, std::nullopt)));
}

TEST(TunedLlama, RefusesMoreLayersThanThereAre) {
  const fixtures::TempFolder folder;
  JointConfig config;
  config.part = TrainedPart::LastLayers;
  config.last_layers = 5;
  EXPECT_EQ(fixtures::error_text(folder, [&] { const TunedLlama llama(four_layers(), config, 1); }),
            "train.joint.last_layers is 5, the backbone has 4 layers, expected at most that many; "
            "lower it, or set train.joint.part to all_layers");
}

}  // namespace
}  // namespace medusa
