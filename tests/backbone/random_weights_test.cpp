#include "backbone/random_weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backbone/llama.h"
#include "tests/backbone/tiny_model.h"

namespace medusa {
namespace {

TEST(RandomWeights, ASeedAlwaysGivesTheSame) {
  const Weights one = random_weights(tiny_config(), at::kFloat, at::kCPU, 1),
                again = random_weights(tiny_config(), at::kFloat, at::kCPU, 1),
                other = random_weights(tiny_config(), at::kFloat, at::kCPU, 2);
  EXPECT_EQ(one.fingerprint, again.fingerprint);
  EXPECT_NE(one.fingerprint, other.fingerprint);
  for (const auto& [name, part] : kLayerParts) {
    const at::Tensor& tensor = one.layers[1].*part;
    if (!tensor.defined()) continue;
    EXPECT_TRUE(tensor.equal(again.layers[1].*part)) << name;
    EXPECT_FALSE(tensor.equal(other.layers[1].*part)) << name;
    EXPECT_FALSE(tensor.equal(one.layers[0].*part)) << name;
  }
}

// So a seed's numbers on a GPU can be looked at here: splitmix64's finaliser, as its author has it.
TEST(RandomWeights, NumbersAreThoseOfTheirPlace) {
  const Weights weights = random_weights(tiny_config(), at::kFloat, at::kCPU, 7);
  const uint64_t address = Random(7).bits(RandomUse::Init, 0);
  const auto width = static_cast<float>(std::sqrt(3.0 / 64));
  for (const int64_t place : {0, 1, 63, 64, 8319}) {
    uint64_t x = address + static_cast<uint64_t>(place);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    const float expected = width * (static_cast<float>(x >> 40) / 8388608 - 1);
    EXPECT_NEAR(weights.embedding.view(-1)[place].item<float>(), expected, 1e-6) << place;
  }
}

TEST(RandomWeights, NumbersDoNotRepeatWhereTheyAreMadeInChunks) {
  ModelConfig config = tiny_config();
  config.num_layers = 0;
  config.vocab_size = 66000;  // 64 numbers each: the 4,194,304th is in row 65,536
  const at::Tensor embedding = random_weights(config, at::kFloat, at::kCPU, 1).embedding;
  EXPECT_FALSE(embedding[0].equal(embedding[65536]));
  EXPECT_NEAR(embedding.mean().item<double>(), 0, 1e-3);
  EXPECT_NEAR(embedding.std().item<double>(), 1.0 / 8, 1e-3);
  EXPECT_GT(embedding[65999].abs().max().item<double>(), 0.1);
}

TEST(RandomWeights, StatesStayFiniteThroughManyLayers) {
  ModelConfig config = uneven_config();
  config.num_layers = 40;
  config.no_rope = {};
  config.windows = {};
  config.qkv_bias = true;
  config.tied_output = false;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    Llama llama(random_weights(config, dtype, at::kCPU, 3), Kernels::Reference);
    KvCache cache = llama.make_cache(1, 64);
    const std::vector<TokenId> text = random_tokens(1, 32);
    const at::Tensor logits =
        llama.logits(llama.prefill(cache.open(), text, cache).unsqueeze(0)).to(at::kFloat);
    EXPECT_GT(logits.std().item<double>(), 0.3);
    EXPECT_LT(logits.std().item<double>(), 3);
  }
}

}  // namespace
}  // namespace medusa
