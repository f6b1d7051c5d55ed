#include "heads/heads_runner.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "heads/cpu/cpu_heads.h"
#include "heads/prefix_model.h"
#include "tests/heads/random_heads.h"

namespace medusa {
namespace {

TEST(HeadsRunner, AgreesWithTheTrainingHeads) {
  const Weights backbone = tiny_weights(1);
  const at::Tensor hidden = random_hidden(6, at::kFloat);
  const auto text = some_text(8);
  const at::Tensor tokens = at::tensor(text, at::kInt).unfold(0, 3, 1);  // [6, 3]
  const at::Tensor embeddings = token_embeddings(backbone, embedding_gain(backbone), tokens);
  for (const HeadsConfig& config : all_configs()) {
    SCOPED_TRACE(describe(config));
    const MedusaHeads heads = random_heads(config, backbone);
    HeadsRunner runner(heads, backbone, 7);
    const HeadDrafts& drafts = runner.draft(hidden, text);
    ASSERT_EQ(drafts.size(), 6);
    for (int64_t k = 0; k < config.num_heads; ++k) {
      const at::Tensor output = heads.outputs.empty() ? shared_output(heads, backbone)
                                                      : heads.outputs[static_cast<size_t>(k)];
      at::Tensor logits = at::linear(head_state(heads, k, hidden, embeddings), output);
      if (is_corrected(heads, k)) {
        const auto rows_of = rows_of_tokens(heads);
        std::vector<int32_t> before;
        for (int64_t m = 0; m < 6; ++m)
          before.push_back(rows_of[static_cast<size_t>(text[static_cast<size_t>(m + k)])]);
        logits += at::linear(correction_rows(*heads.correction, before, at::kFloat),
                             heads.correction->factor_of(k));
      }
      const auto [values, rows] = at::topk(at::log_softmax(logits, 1), 7, 1);
      for (int64_t m = 0; m < 6; ++m)
        for (int64_t r = 0; r < 7; ++r) {
          EXPECT_EQ(drafts.token(m, k, r), heads.token_of_row(rows[m][r].item<int64_t>()));
          EXPECT_NEAR(drafts.log_prob(m, k, r), values[m][r].item<float>(), 1e-4);
        }
    }
  }
}

TEST(HeadsRunner, PositionsDoNotDependOnEachOther) {
  const Weights backbone = tiny_weights(1, tiny_config(), at::kBFloat16);
  const at::Tensor hidden = random_hidden(33, at::kBFloat16);
  const auto text = some_text(35);
  for (const Kernels kernels : {Kernels::Auto, Kernels::Reference})
    for (const HeadsConfig& config : all_configs()) {
      SCOPED_TRACE(describe(config));
      HeadsRunner runner(random_heads(config, backbone), backbone, 10, kernels);
      const HeadDrafts together = runner.draft(hidden, text);
      // Without AMX LibTorch's GEMM of one row rounds now and then to the other side.
      const float tolerance =
          kernels == Kernels::Auto && cpu_heads_support(backbone, CpuIsa::Auto) ? 0 : 0.1F;
      for (int64_t m = 0; m < 33; ++m) {
        const HeadDrafts& alone =
            runner.draft(hidden[m], std::span(text).subspan(static_cast<size_t>(m)));  // [H] too
        const auto begin = static_cast<size_t>(m) * alone.tokens.size();
        for (size_t i = 0; i < alone.tokens.size(); ++i) {
          if (tolerance == 0) {
            ASSERT_EQ(alone.tokens[i], together.tokens[begin + i]) << m;
          }
          ASSERT_NEAR(alone.log_probs[i], together.log_probs[begin + i], tolerance) << m;
        }
      }
    }
}

TEST(HeadsRunner, AHeadDoesNotDependOnHowManyAreAsked) {
  const Weights backbone = tiny_weights(1, tiny_config(), at::kBFloat16);
  const at::Tensor hidden = random_hidden(5, at::kBFloat16);
  const auto text = some_text(7);
  for (const Kernels kernels : {Kernels::Auto, Kernels::Reference})
    for (const HeadsConfig& config : all_configs()) {
      SCOPED_TRACE(describe(config));
      HeadsRunner runner(random_heads(config, backbone), backbone, 10, kernels);
      const HeadDrafts all = runner.draft(hidden, text);
      ASSERT_EQ(all.num_heads, 3);
      for (int64_t num_heads = 1; num_heads <= 3; ++num_heads) {
        const HeadDrafts& some = runner.draft(hidden, text, num_heads);
        ASSERT_EQ(some.num_heads, num_heads);
        ASSERT_EQ(some.size(), 5);
        for (int64_t m = 0; m < 5; ++m)
          for (int64_t k = 0; k < num_heads; ++k)
            for (int64_t rank = 0; rank < 10; ++rank) {
              ASSERT_EQ(some.token(m, k, rank), all.token(m, k, rank));
              ASSERT_EQ(some.log_prob(m, k, rank), all.log_prob(m, k, rank));  // the same bits
            }
      }
    }
}

TEST(HeadsRunner, AlongAnAnswerHeadsReadWhatThePrefixLayerGives) {
  const Weights backbone = tiny_weights(1);
  const at::Tensor hidden = random_hidden(6, at::kFloat);
  const auto text = some_text(8);
  for (const HeadsConfig& config : all_configs()) {
    SCOPED_TRACE(describe(config));
    const MedusaHeads heads = random_heads(config, backbone);
    HeadsRunner runner(heads, backbone, 7);
    ASSERT_EQ(runner.prefix() != nullptr, has_prefix(config.input));
    const HeadDrafts plain = runner.draft(hidden, text);
    const HeadDrafts along = runner.draft_along(hidden, text);
    EXPECT_EQ(along.size(), 6);
    if (!has_prefix(config.input)) {
      EXPECT_EQ(along.log_probs, plain.log_probs);
      continue;
    }
    EXPECT_NE(along.log_probs, plain.log_probs);
    PrefixText states(*runner.prefix());
    EXPECT_EQ(runner.draft(states.extend(hidden, std::span(text).first(6)), text).log_probs,
              along.log_probs);
  }
}

TEST(HeadsRunner, RefusesMoreDraftsThanTokens) {
  const Weights backbone = tiny_weights(1);
  const MedusaHeads heads =
      random_heads(heads_config(HeadInput::Root, HeadOutput::TruncatedShared), backbone);
  EXPECT_NO_THROW(HeadsRunner(heads, backbone, 50));
  try {
    HeadsRunner(heads, backbone, 51);
    FAIL() << "51 drafts of 50 tokens";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "heads: top_k is 51, expected 1 to 50, the tokens that the heads can draft; lower "
                 "it");
  }
}

}  // namespace
}  // namespace medusa
