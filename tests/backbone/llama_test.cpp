#include "backbone/llama.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "backbone/files/hf_export.h"
#include "backbone/reference_layer.h"
#include "base/file.h"
#include "tests/backbone/tiny_model.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

/// Greedy tokens after a prompt, one row at a time.
std::vector<TokenId> greedy(Llama& llama, std::vector<TokenId> text, size_t count) {
  KvCache cache = llama.make_cache(1, 128);
  const int32_t slot = cache.open();
  const size_t prompt = text.size();
  if (prompt > 1) llama.prefill(slot, std::span(text).first(prompt - 1), cache);
  while (text.size() < prompt + count) {
    const Segment root{slot, std::span(text).last(1), {}};
    const at::Tensor logits = llama.logits(llama.forward({&root, 1}, cache));
    const std::vector<int32_t> kept{0};
    cache.commit(slot, kept);
    text.push_back(static_cast<TokenId>(logits[0].argmax().item<int64_t>()));
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt), text.end()};
}

TEST(Llama, TheTinyTrainedModelTellsItsStory) {
  const std::filesystem::path file = MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf";
  const auto golden = nlohmann::json::parse(
      read_file(MEDUSA_SOURCE_DIR "/tests/golden/tiny_model_texts.json"));  // by transformers
  const fixtures::TempFolder folder;
  write_hf_model(folder.path(), load_weights(file, at::kFloat, at::kCPU), file);
  for (const auto& source : {file, folder.path()}) {
    Llama llama(load_weights(source, at::kFloat, at::kCPU));
    for (const auto& each : golden.at("texts")) {
      const auto tokens = each.at("tokens").get<std::vector<TokenId>>();
      EXPECT_EQ(greedy(llama, each.at("prompt"), tokens.size()), tokens) << source << each;
    }
  }
}

TEST(Llama, APromptInChunksEqualsOnePass) {
  // 300 tokens are three chunks. In bfloat16 a row's bits do not depend on the rows beside it.
  const std::vector<TokenId> tokens = random_tokens(1, 300);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const Kernels kernels : {Kernels::Reference, Kernels::Auto}) {
      Llama llama(tiny_weights(1, tiny_config(), dtype), kernels);
      KvCache cache = llama.make_cache(2, 320);
      const int32_t one = cache.open(), chunked = cache.open();
      const Segment whole{one, tokens, {}};
      const at::Tensor last = llama.forward({&whole, 1}, cache)[299].clone();
      const at::Tensor prefilled = llama.prefill(chunked, tokens, cache);
      EXPECT_EQ(cache.length(chunked), 300);
      EXPECT_EQ(prefilled.sizes(), (at::IntArrayRef{64}));
      if (dtype == at::kFloat)
        EXPECT_TRUE(at::allclose(prefilled, last, 1e-4, 1e-5));
      else
        EXPECT_TRUE(at::equal(prefilled, last)) << llama.kernels();
    }
}

TEST(Llama, SomeOfItsLayersAreTheModelThatHasOnlyThese) {
  const std::vector<TokenId> tokens = random_tokens(1, 50);
  ModelConfig config = tiny_config();
  config.num_layers = 4;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const Kernels kernels : {Kernels::Reference, Kernels::Auto}) {
      const Weights all = tiny_weights(1, config, dtype);
      Weights some = all;
      some.config.num_layers = 2;
      some.layers = {all.layers[0], all.layers[3]};
      const auto states_of = [&](const Weights& weights, const std::vector<int32_t>& layers) {
        Llama llama(weights, kernels);
        KvCache cache = llama.make_cache(1, 64);
        const Segment segment{cache.open(), tokens, {}};
        return llama.forward({&segment, 1}, cache, layers).clone();
      };
      EXPECT_TRUE(at::equal(states_of(all, {0, 3}), states_of(some, {})));
      EXPECT_TRUE(at::equal(states_of(all, {0, 1, 2, 3}), states_of(all, {})));
    }
}

TEST(Llama, LayersAloneAreThePassWithoutNonLayerWeights) {
  const std::vector<TokenId> tokens = random_tokens(1, 50);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const Kernels kernels : {Kernels::Reference, Kernels::Auto}) {
      const Weights weights = tiny_weights(1, uneven_config(), dtype);
      Weights without_output = weights;
      without_output.lm_head = at::Tensor();
      Llama llama(weights, kernels), layers(without_output, kernels);
      KvCache cache = llama.make_cache(2, 64);
      const int32_t slot = cache.open(), other = cache.open();
      const Segment whole{slot, tokens, {}};
      const at::Tensor expected = llama.forward({&whole, 1}, cache).clone();
      const Segment again{other, tokens, {}};
      const at::Tensor ids = at::tensor(tokens, at::kInt);
      const at::Tensor x = layers.run_layers(
          {&again, 1}, weights.embedding.index_select(0, ids).to(at::kFloat), cache);
      EXPECT_EQ(x.scalar_type(), at::kFloat);
      const at::Tensor states =
          rms_norm(x, weights.final_norm, weights.config.norm_epsilon).to(dtype);
      // The last norm is LibTorch's here.
      const double tolerance = dtype == at::kFloat ? 1e-5 : 0.02;
      EXPECT_TRUE(at::allclose(states, expected, tolerance, tolerance)) << llama.kernels();
      // Both slots hold the same now: what follows has the same bits.
      std::vector<int32_t> rows(tokens.size());
      std::iota(rows.begin(), rows.end(), 0);
      for (const int32_t each : {slot, other}) cache.commit(each, rows);
      const std::vector<TokenId> next{7};
      const Segment behind{slot, next, {}}, behind_other{other, next, {}};
      EXPECT_TRUE(at::equal(llama.forward({&behind, 1}, cache).clone(),
                            llama.forward({&behind_other, 1}, cache)));
    }
}

/// What a pass in chunks hands over of all rows, [N, F, H], and its states.
struct Handed {
  at::Tensor features, states;
};

Handed features_of(Llama& llama, std::span<const TokenId> tokens,
                   const std::vector<int32_t>& layers, size_t chunk) {
  KvCache cache = llama.make_cache(1, std::ssize(tokens) + 1);
  const int32_t slot = cache.open();
  std::vector<at::Tensor> features, states;
  for (; !tokens.empty(); tokens = tokens.subspan(std::min(chunk, tokens.size()))) {
    const Segment segment{slot, tokens.first(std::min(chunk, tokens.size())), {}};
    Features asked{layers, std::vector<int32_t>(segment.tokens.size())};
    std::iota(asked.rows.begin(), asked.rows.end(), 0);
    states.push_back(llama.forward({&segment, 1}, cache, {}, &asked).clone());
    features.push_back(asked.values);
    cache.commit(slot, asked.rows);
  }
  return {at::cat(features), at::cat(states)};
}

TEST(Llama, FeaturesAreWhatLayersAreGiven) {
  const std::vector<TokenId> tokens = random_tokens(1, 150);
  ModelConfig config = tiny_config();
  config.num_layers = 5;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const Kernels kernels : {Kernels::Reference, Kernels::Auto}) {
      const Weights weights = tiny_weights(1, config, dtype);
      Llama llama(weights, kernels);
      const Handed handed = features_of(llama, tokens, {0, 2, 5}, tokens.size());
      ASSERT_EQ(handed.features.sizes(), (at::IntArrayRef{150, 3, 64}));
      EXPECT_EQ(handed.features.scalar_type(), at::kFloat);
      const at::Tensor before = handed.features.select(1, 0), middle = handed.features.select(1, 1),
                       behind = handed.features.select(1, 2);
      const at::Tensor embedded = weights.embedding.index_select(0, at::tensor(tokens, at::kInt));
      EXPECT_TRUE(at::equal(before, embedded.to(at::kFloat)));
      // The layers from the second on make of one what the other is, to the bit.
      Weights rest = weights;
      rest.config.num_layers = 3;
      rest.layers = {weights.layers[2], weights.layers[3], weights.layers[4]};
      Llama tail(rest, kernels);
      KvCache cache = tail.make_cache(1, 160);
      const Segment whole{cache.open(), tokens, {}};
      EXPECT_TRUE(at::equal(tail.run_layers({&whole, 1}, middle, cache), behind));
      const double tolerance = dtype == at::kFloat ? 1e-5 : 0.02;  // the last norm is LibTorch's
      EXPECT_TRUE(at::allclose(rms_norm(behind, weights.final_norm, config.norm_epsilon).to(dtype),
                               handed.states, tolerance, tolerance));
    }
}

TEST(Llama, FeaturesDoNotDependOnChunksNorChangeAnything) {
  const std::vector<TokenId> tokens = random_tokens(2, 150);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const Kernels kernels : {Kernels::Reference, Kernels::Auto}) {
      Llama llama(tiny_weights(1, uneven_config(), dtype), kernels);
      const Handed whole = features_of(llama, tokens, {1, 3}, tokens.size());
      const Handed chunked = features_of(llama, tokens, {1, 3}, 47);
      KvCache cache = llama.make_cache(1, 160);
      const Segment segment{cache.open(), tokens, {}};
      EXPECT_TRUE(at::equal(llama.forward({&segment, 1}, cache), whole.states));
      if (dtype == at::kFloat) {
        EXPECT_TRUE(at::allclose(chunked.features, whole.features, 1e-4, 1e-5));
      } else {
        EXPECT_TRUE(at::equal(chunked.features, whole.features)) << llama.kernels();
      }
    }
}

TEST(Llama, FeaturesAreOfTheRowsThatAreAskedFor) {
  const std::vector<TokenId> tokens = random_tokens(3, 40);
  for (const Kernels kernels : {Kernels::Reference, Kernels::Auto}) {
    Llama llama(tiny_weights(1, tiny_config(), at::kBFloat16), kernels);
    const Handed all = features_of(llama, tokens, {1, 2}, tokens.size());
    KvCache cache = llama.make_cache(1, 64);
    const Segment segment{cache.open(), tokens, {}};
    Features some{{2}, {3, 17, 39}};
    llama.forward({&segment, 1}, cache, {}, &some);
    ASSERT_EQ(some.values.sizes(), (at::IntArrayRef{3, 1, 64}));
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_TRUE(at::equal(some.values[i][0], all.features[some.rows[static_cast<size_t>(i)]][1]));
  }
}

TEST(Llama, Bfloat16IsFloat32WithinRounding) {
  const std::vector<TokenId> tokens = random_tokens(1, 50);
  const Weights rounded = tiny_weights(1, tiny_config(), at::kBFloat16);
  Weights exact = rounded;  // the same numbers in float32
  exact.embedding = exact.lm_head = rounded.embedding.to(at::kFloat);
  for (LayerWeights& layer : exact.layers)
    for (at::Tensor* each : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down})
      *each = each->to(at::kFloat);
  const auto logits_of = [&](const Weights& weights, Kernels kernels) {
    Llama llama(weights, kernels);
    KvCache cache = llama.make_cache(1, 64);
    const Segment segment{cache.open(), tokens, {}};
    return llama.logits(llama.forward({&segment, 1}, cache)).clone();
  };
  const at::Tensor expected = logits_of(exact, Kernels::Reference);
  for (const Kernels kernels : {Kernels::Reference, Kernels::Auto}) {
    const at::Tensor logits = logits_of(rounded, kernels);
    EXPECT_EQ(logits.scalar_type(), at::kFloat);
    EXPECT_LT((logits - expected).abs().max().item<double>(), 0.05);
  }
}

TEST(Llama, TokensAndPositionsBeyondTheModelAreABug) {
  ModelConfig config = tiny_config();
  config.context = 40;
  Llama llama(tiny_weights(1, config));
  KvCache cache = llama.make_cache(1, 64);
  const int32_t slot = cache.open();
  const auto run = [&](std::vector<TokenId> tokens) {
    const Segment segment{slot, tokens, {}};
    llama.forward({&segment, 1}, cache);
  };
  EXPECT_NO_THROW(run(random_tokens(1, 40)));
  EXPECT_THROW(run(random_tokens(1, 41)), std::logic_error);
  EXPECT_THROW(run({130}), std::logic_error);
  EXPECT_THROW(run({-1}), std::logic_error);
}

}  // namespace
}  // namespace medusa
