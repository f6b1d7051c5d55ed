// What sequences share of the KV cache, and how much of it they take.
#include <gtest/gtest.h>

#include "heads/heads_runner.h"
#include "infer/decoder.h"
#include "infer/drafters/medusa_drafter.h"
#include "infer/rules/greedy_rule.h"
#include "tests/infer/every_target.h"
#include "tests/infer/toy_heads.h"

namespace medusa {
namespace {

class BackboneTargetCaches : public fixtures::EveryTarget {};

INSTANTIATE_TEST_SUITE_P(Types, BackboneTargetCaches, testing::ValuesIn(fixtures::every_setup()),
                         [](const auto& each) { return each.param.name; });

/// Decodes behind a prompt in the next step of a conversation.
struct Turn {
  std::vector<TokenId> text;  // prompt and answer
  std::vector<at::Tensor> logits;
  DecodeStats stats;
};

Turn take_turn(BackboneTarget& target, const AcceptanceRule& rule, const DrafterFactory& drafter,
               std::vector<TokenId> prompt) {
  Turn turn{prompt, {}, {}};
  DecodeRequest request{std::move(prompt), {24, 64, {}}, Random(1), {}};
  request.emit = [&turn](const EmittedToken& token) {
    turn.text.push_back(token.id);
    turn.logits.push_back(token.output->logits[token.row].clone());
    return true;
  };
  turn.stats = decode_one(target, rule, drafter, std::move(request)).stats;
  return turn;
}

TEST_P(BackboneTargetCaches, AConversationsNextPromptBeginsWithTheLastOneAndItsAnswer) {
  HeadsRunner runner(fixtures::arbitrary_heads(weights_), weights_, 40, llama_.execution());
  const TreeShape shape = fixtures::some_trees().back().shape();
  const auto medusa = [&] { return std::make_unique<MedusaDrafter>(runner, shape); };
  BackboneTarget target(llama_, 2, fixtures::kRows);
  std::vector<TokenId> prompt = random_tokens(31, 50);
  int64_t cached = 0;
  for (uint64_t turn = 0; turn < 3; ++turn) {
    // Answered with trees, so that rows of other turns were moved when they were committed.
    const Turn here = take_turn(target, GreedyRule(), medusa, prompt);
    BackboneTarget fresh(llama_, 1, fixtures::kRows);
    const Turn alone = take_turn(fresh, GreedyRule(), medusa, prompt);
    EXPECT_EQ(alone.stats.cached_prompt_tokens, 0);
    ASSERT_EQ(here.text, alone.text) << "turn " << turn;
    for (size_t i = 0; i < here.logits.size(); ++i)
      expect_same(here.logits[i], alone.logits[i], "logits of token " + std::to_string(i));
    EXPECT_EQ(here.stats.cached_prompt_tokens, llama_.rows_are_independent() ? cached : 0);
    cached = (std::ssize(here.text) - 1) / 32 * 32;  // full blocks; the last token has no row
    EXPECT_EQ(target.cache_use().blocks_kept, llama_.rows_are_independent() ? cached / 32 : 0);
    prompt = here.text;
    const std::vector<TokenId> question = random_tokens(40 + turn, 17);
    prompt.insert(prompt.end(), question.begin(), question.end());
  }
}

TEST_P(BackboneTargetCaches, SixteenShortSequencesTakeTheMemoryOfWhatTheyHold) {
  Llama& llama = llama_;
  const int64_t context = llama.config().context;
  BackboneTarget target(llama, 16, context);
  const int64_t whole = 16 * llama.cache_bytes(context), block = llama.cache_bytes(32);
  ASSERT_EQ(whole, 16 * context / 32 * block);
  EXPECT_EQ(target.cache().bytes(), 0);
  std::vector<int32_t> slots;
  for (uint64_t i = 0; i < 16; ++i) {
    slots.push_back(target.open());
    target.prefill(slots.back(), random_tokens(100 + i, 40));
  }
  EXPECT_EQ(target.cache_use().blocks_used, 32);
  EXPECT_EQ(target.cache().bytes(), 32 * block) << "of " << whole;
  for (const int32_t slot : slots) target.close(slot);
  EXPECT_EQ(target.cache_use().blocks_used, 0);
}

TEST_P(BackboneTargetCaches, ASmallPoolGivesTheTextsOfALargeOne) {
  constexpr size_t kRequests = 7;
  HeadsRunner runner(fixtures::arbitrary_heads(weights_), weights_, 40, llama_.execution());
  const TreeShape shape = fixtures::some_trees().back().shape();
  const auto medusa = [&] { return std::make_unique<MedusaDrafter>(runner, shape); };
  std::vector<std::vector<std::vector<TokenId>>> texts;
  // Requests need up to 5 of the 8 blocks: of four slots one or two are in use, and nothing stays
  // in the cache for long.
  for (const bool small : {false, true}) {
    BackboneTarget target(llama_, 4, fixtures::kRows,
                          small ? std::optional(8 * llama_.cache_bytes(32)) : std::nullopt);
    auto& all = texts.emplace_back(kRequests);
    size_t taken = 0;
    const auto next = [&]() -> std::optional<DecodeRequest> {
      if (taken == kRequests) return std::nullopt;
      const size_t i = taken++;
      return DecodeRequest{random_tokens(i % 3, 20 + static_cast<int64_t>(6 * i)),
                           {24, 64, {}},
                           Random(60 + i),
                           [&all, i](const EmittedToken& token) {
                             all[i].push_back(token.id);
                             return true;
                           }};
    };
    decode(target, GreedyRule(), medusa, next, [&](size_t, const DecodeStats&) {
      EXPECT_LE(target.cache_use().blocks_used, target.cache_use().blocks_total);
      return true;
    });
    EXPECT_EQ(target.cache_use().blocks_used, 0);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

}  // namespace
}  // namespace medusa
