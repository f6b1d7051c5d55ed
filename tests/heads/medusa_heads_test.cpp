#include "heads/medusa_heads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "heads/heads_runner.h"
#include "tests/base/error_text.h"
#include "tests/heads/random_heads.h"

namespace medusa {
namespace {

TEST(MedusaHeads, UntrainedHeadsHaveExactlyTheLmHeadsLogits) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Weights backbone = tiny_weights(1, tiny_config(), dtype);
    const at::Tensor hidden = random_hidden(5, dtype);
    const at::Tensor tokens = random_hidden(15, dtype, 29).view({5, 3, -1});
    for (const HeadsConfig& config : all_configs()) {
      SCOPED_TRACE(describe(config));
      const MedusaHeads heads = untrained_heads(config, backbone);
      const at::Tensor rows = shared_output(heads, backbone);
      ASSERT_EQ(rows.size(0), heads.output_rows());
      for (int64_t row = 0; row < rows.size(0); ++row)
        ASSERT_TRUE(at::equal(rows[row], backbone.lm_head[heads.token_of_row(row)])) << row;
      for (int64_t head = 0; head < config.num_heads; ++head) {
        const at::Tensor state = head_state(heads, head, hidden, tokens);
        if (is_low_rank(config.output)) continue;  // cannot equal it
        EXPECT_TRUE(at::equal(state, hidden));
        if (!heads.outputs.empty()) {
          const at::Tensor own = heads.outputs[static_cast<size_t>(head)].to(dtype);
          EXPECT_TRUE(at::equal(at::linear(state, own), at::linear(hidden, rows)));
        }
      }
    }
  }
}

TEST(MedusaHeads, EveryLayerHasParametersOfItsOwn) {
  // The paper's code repeated one block object, so that all layers of a head shared one set.
  const Weights backbone = tiny_weights(1);
  const int64_t h = 64, heads = 3, layers = 2;
  const auto count = [&](HeadInput input, HeadOutput output) {
    const MedusaHeads made = untrained_heads(heads_config(input, output, layers, heads), backbone);
    std::set<const void*> places;
    for (const auto& [name, tensor] : named_parameters(made)) places.insert(tensor.data_ptr());
    EXPECT_EQ(places.size(), named_parameters(made).size());
    EXPECT_FALSE(places.contains(backbone.lm_head.data_ptr()));
    return num_parameters(made);
  };
  EXPECT_EQ(count(HeadInput::Hidden, HeadOutput::Shared), heads * layers * (h * h + h));
  EXPECT_EQ(count(HeadInput::Root, HeadOutput::Shared), heads * layers * (3 * h * h + h));
  // W1 of [h; e_0 … e_k], W2 and the bias.
  EXPECT_EQ(count(HeadInput::Sequential, HeadOutput::Shared),
            layers * ((3 + 4 + 5) * h * h + heads * h));
  // The layer that all heads share: P, qkv, output, gate, up and down, and two norms.
  const int64_t layer = h * h + (4 + 2 * 2) * 32 * h + h * 4 * 32 + 3 * 96 * h + 2 * h;
  EXPECT_EQ(count(HeadInput::Prefix, HeadOutput::Shared), heads * layers * (3 * h * h + h) + layer);
  EXPECT_EQ(count(HeadInput::PrefixSequential, HeadOutput::Shared),
            layers * ((3 + 4 + 5) * h * h + heads * h) + layer);
  EXPECT_EQ(count(HeadInput::Hidden, HeadOutput::Own), heads * (layers * (h * h + h) + 130 * h));
  EXPECT_EQ(count(HeadInput::Root, HeadOutput::TruncatedOwn),
            heads * (layers * (3 * h * h + h) + 50 * h));
  EXPECT_EQ(count(HeadInput::Hidden, HeadOutput::LowRank),
            heads * (layers * (h * h + h) + 32 * (130 + h)));
  EXPECT_EQ(count(HeadInput::Root, HeadOutput::TruncatedLowRank),
            heads * (layers * (3 * h * h + h) + 32 * (50 + h)));
}

TEST(MedusaHeads, LowRankOutputsBeginAsTheBestOfTheirRank) {
  const Weights backbone = tiny_weights(1);
  HeadsConfig config = heads_config(HeadInput::Hidden, HeadOutput::LowRank);
  const at::Tensor centred = backbone.lm_head - backbone.lm_head.mean(0, true);
  const at::Tensor singular = std::get<1>(at::svd(centred.to(at::kDouble)));
  double last = 1e30;
  for (const int64_t rank : {32, 64}) {
    SCOPED_TRACE(rank);
    config.output_rank = rank;
    const MedusaHeads heads = untrained_heads(config, backbone);
    const double error = (whole_output(heads, 2) - centred).square().sum().item<double>();
    const double least = singular.slice(0, rank).square().sum().item<double>();
    EXPECT_NEAR(error, least, 1e-6 * centred.square().sum().item<double>());
    EXPECT_LT(error, last);
    last = error;
  }
  EXPECT_LT(last, 1e-6) << "with rank H nothing is lost";
  // And then drafts are the LM head's.
  const MedusaHeads heads = untrained_heads(config, backbone);
  const at::Tensor hidden = random_hidden(5, at::kFloat);
  const at::Tensor logits = at::linear(head_state(heads, 1, hidden, {}), heads.outputs[1]);
  EXPECT_TRUE(at::allclose(at::log_softmax(logits, 1),
                           at::log_softmax(at::linear(hidden, backbone.lm_head), 1), 1e-4, 1e-4));
}

TEST(HeadsConfig, RefusesARankThatIsNoMultipleOf32) {
  HeadsConfig config;
  config.output_rank = 40;
  EXPECT_EQ(fixtures::error_text([&] { config.validate(); }),
            "heads: 'output_rank' is 40, which leaves 8 over when divided by 32, expected a "
            "multiple of 32; write 64");
}

TEST(HeadsConfig, RefusesACorrectionThatCannotBe) {
  const auto error = [](const HeadsConfig& config) {
    return fixtures::error_text([&] { config.validate(); });
  };
  EXPECT_EQ(error({.correction_rank = 40}),
            "heads: 'correction_rank' is 40, which leaves 8 over when divided by 32, expected a "
            "multiple of 32; write 64");
  EXPECT_EQ(error({.input = HeadInput::PrefixSequential, .correction_rank = 32}),
            "heads: 'correction_rank' is 32, 'input' is prefix_sequential, whose heads read the "
            "tokens drafted before anyway, expected 0 there; set it to 0, or 'input' to prefix");
  EXPECT_EQ(error({.num_heads = 1, .correction_rank = 32}),
            "heads: 'correction_rank' is 32, 'num_heads' is 1, expected at least 2 heads, as the "
            "first one has no draft before its own; set 'correction_rank' to 0 or train more "
            "heads");
  EXPECT_EQ(error({.input = HeadInput::Prefix, .correction_rank = 96}), "(no error)");
}

TEST(MedusaHeads, ACorrectionBeginsAsTheEmbeddingsAndCorrectsNothing) {
  const Weights backbone = tiny_weights(1);
  HeadsConfig config = heads_config(HeadInput::Root, HeadOutput::TruncatedShared);
  config.correction_rank = 64;
  const MedusaHeads heads = untrained_heads(config, backbone);
  ASSERT_TRUE(heads.correction.has_value());
  ASSERT_EQ(heads.correction->factors.size(), 2U);
  for (const at::Tensor& factor : heads.correction->factors) {
    EXPECT_EQ(factor.sizes(), (at::IntArrayRef{50, 64}));
    EXPECT_EQ(factor.abs().max().item<float>(), 0);
  }
  // Of rank H nothing is lost: tokens are as far apart as their embeddings.
  const at::Tensor table = heads.correction->table;
  ASSERT_EQ(table.sizes(), (at::IntArrayRef{51, 64}));
  const double gain = embedding_gain(backbone);
  for (const auto& [a, b] : {std::pair(0, 1), std::pair(3, 40)}) {
    const at::Tensor apart = gain * (backbone.embedding[heads.token_of_row(a)] -
                                     backbone.embedding[heads.token_of_row(b)]);
    EXPECT_NEAR((table[a] - table[b]).norm().item<double>(), apart.norm().item<double>(), 1e-4);
  }
  EXPECT_EQ(table[50].abs().max().item<float>(), 0) << "tokens that no row drafts";
  EXPECT_TRUE(
      at::equal(correction_rows(*heads.correction, std::vector<int32_t>{7, -1, -2}, at::kFloat),
                at::stack({table[7], table[50], table[50]})));
  EXPECT_EQ(num_parameters(heads) -
                num_parameters(untrained_heads(
                    heads_config(HeadInput::Root, HeadOutput::TruncatedShared), backbone)),
            (51 + 2 * 50) * 64);

  // What it makes of the drafts: at first nothing.
  HeadsRunner with(heads, backbone, 10);
  HeadsRunner without(
      untrained_heads(heads_config(HeadInput::Root, HeadOutput::TruncatedShared), backbone),
      backbone, 10);
  const at::Tensor hidden = random_hidden(6, at::kFloat);
  const HeadDrafts& found = with.draft(hidden, some_text(8));
  const HeadDrafts& expected = without.draft(hidden, some_text(8));
  EXPECT_EQ(found.tokens, expected.tokens);
  EXPECT_EQ(found.log_probs, expected.log_probs);
}

TEST(HeadsConfig, RefusesAStartForALayerThatIsNotThere) {
  HeadsConfig config;
  config.start = HeadStart::LastLayer;
  EXPECT_EQ(fixtures::error_text([&] { config.validate(); }),
            "heads: 'start' is last_layer, 'input' is root, expected prefix or prefix_sequential, "
            "which have a layer that can begin so; set 'input' to one of them, or 'start' to "
            "random");
  config.input = HeadInput::PrefixSequential;
  EXPECT_NO_THROW(config.validate());
}

TEST(MedusaHeads, ResidualLayersAreAsWritten) {
  const Weights backbone = tiny_weights(1);
  const at::Tensor h = random_hidden(4, at::kFloat);
  const at::Tensor tokens = random_hidden(12, at::kFloat, 31).view({4, 3, 64});
  const auto silu = [](const at::Tensor& x) { return x / (1 + at::exp(-x)); };
  const MedusaHeads plain =
      random_heads(heads_config(HeadInput::Hidden, HeadOutput::Shared, 2), backbone);
  const MedusaHeads root =
      random_heads(heads_config(HeadInput::Root, HeadOutput::Shared, 2), backbone);
  const MedusaHeads sequential =
      random_heads(heads_config(HeadInput::Sequential, HeadOutput::Shared, 2), backbone);
  for (int64_t head = 0; head < 3; ++head) {
    at::Tensor y = h, z = h, s = h;
    for (int64_t layer = 0; layer < 2; ++layer) {
      const HeadBlock& a = plain.blocks[static_cast<size_t>(2 * head + layer)];
      y = y + silu(at::matmul(y, a.weight.t()) + a.bias);
      const HeadBlock& b = root.blocks[static_cast<size_t>(2 * head + layer)];
      const at::Tensor inner = at::matmul(z, b.weight.slice(1, 0, 64).t()) +
                               at::matmul(tokens.select(1, 0), b.weight.slice(1, 64).t()) + b.bias;
      z = z + at::matmul(silu(inner), b.second.t());
      const HeadBlock& c = sequential.blocks[static_cast<size_t>(2 * head + layer)];
      ASSERT_EQ(c.weight.size(1), (head + 2) * 64);
      at::Tensor sum = at::matmul(s, c.weight.slice(1, 0, 64).t()) + c.bias;
      for (int64_t i = 0; i <= head; ++i)
        sum = sum + at::matmul(tokens.select(1, i), c.weight.narrow(1, 64 * (1 + i), 64).t());
      s = s + at::matmul(silu(sum), c.second.t());
    }
    EXPECT_TRUE(at::allclose(head_state(plain, head, h, tokens), y, 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(head_state(root, head, h, tokens), z, 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(head_state(sequential, head, h, tokens), s, 1e-4, 1e-5));
  }
}

TEST(MedusaHeads, KeptTokensAscendAndMapBack) {
  const Weights backbone = tiny_weights(1);
  const MedusaHeads heads =
      untrained_heads(heads_config(HeadInput::Root, HeadOutput::TruncatedShared), backbone);
  EXPECT_TRUE(std::is_sorted(heads.kept_tokens.begin(), heads.kept_tokens.end()));
  const auto rows = rows_of_tokens(heads);
  ASSERT_EQ(rows.size(), 130U);
  int64_t kept = 0;
  for (TokenId token = 0; token < 130; ++token) {
    const int32_t row = rows[static_cast<size_t>(token)];
    if (row < 0) continue;
    ++kept;
    EXPECT_EQ(heads.token_of_row(row), token);
  }
  EXPECT_EQ(kept, 50);
}

TEST(MedusaHeads, TheStartDependsOnTheSeedAlone) {
  const Weights backbone = tiny_weights(1);
  const HeadsConfig config = heads_config(HeadInput::Root, HeadOutput::Shared);
  const auto first_weight = [&](uint64_t seed) {
    return make_heads(config, backbone, {}, seed).blocks[0].weight;
  };
  EXPECT_TRUE(at::equal(first_weight(5), first_weight(5)));
  EXPECT_FALSE(at::equal(first_weight(5), first_weight(6)));
  EXPECT_LT(first_weight(5).abs().max().item<float>(), 0.0884F);  // 1 / sqrt(128)
}

}  // namespace
}  // namespace medusa
