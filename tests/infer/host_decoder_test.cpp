// The decoder as a server drives it: requests that differ, come and go, and fail.
#include "infer/host_decoder.h"

#include <gtest/gtest.h>

#include <memory>

#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "infer/rules/typical_rule.h"
#include "tests/base/error_text.h"
#include "tests/infer/toy_drafters.h"

namespace medusa {
namespace {

using fixtures::kGreedy;
using fixtures::kWarm;
using fixtures::ToyTarget;

DrafterFactory none() {
  return [] { return std::make_unique<NoneDrafter>(); };
}

std::string what(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& each) {
    return each.what();
  }
}

DrafterFactory failing(size_t at_length) {
  return [at_length] {
    return std::make_unique<fixtures::ToyDrafter>(
        [at_length](const DraftContext& c, const Random&, CandidateTree&) {
          if (c.tokens.size() >= at_length) throw std::runtime_error("drafter failed");
        });
  };
}

class HostDecoderTest : public testing::Test {
 protected:
  static HostDecoder decoder_on(ToyTarget& target, HostDecoderOptions options = {}) {
    return {target, std::make_shared<GreedyRule>(), none(), std::move(options)};
  }

  /// A request whose tokens are kept, by the number it is given.
  DecodeRequest request(const std::vector<TokenId>& prompt, int32_t max_new_tokens,
                        uint64_t seed = 1) {
    texts_.push_back(std::make_unique<std::vector<TokenId>>());
    return fixtures::toy_request(prompt, {max_new_tokens, 12, {}}, seed, *texts_.back());
  }
  const std::vector<TokenId>& text(size_t i) const { return *texts_.at(i); }

  static std::vector<TokenId> long_prompt(size_t size, TokenId first = 0) {
    std::vector<TokenId> prompt;
    for (size_t i = 0; i < size; ++i)
      prompt.push_back(static_cast<TokenId>((i * i + static_cast<size_t>(first)) % 7));
    return prompt;
  }

 private:
  std::vector<std::unique_ptr<std::vector<TokenId>>> texts_;
};

/// What the mixed batch below is made of: request i differs from i - 1 in everything.
struct Mixed {
  std::shared_ptr<const AcceptanceRule> rule;
  DrafterFactory drafter;
  SamplingConfig sampling;
  uint64_t seed;
};

std::vector<Mixed> mixed_requests() {
  std::vector<Mixed> out;
  uint64_t seed = 1;
  for (const SamplingConfig& sampling : {kGreedy, kWarm, SamplingConfig{.temperature = 0.3}}) {
    const auto next = [sampling, seed](std::span<const TokenId> context) {
      return fixtures::plain_choice(context, sampling, Random(seed));
    };
    for (const auto& [name, drafter] : fixtures::toy_drafters(next)) {
      std::shared_ptr<const AcceptanceRule> rule = std::make_shared<GreedyRule>();
      if (sampling.temperature > 0) rule = std::make_shared<MatchRule>(sampling);
      out.push_back({rule, drafter, sampling, seed});
    }
    ++seed;
  }
  return out;
}

TEST_F(HostDecoderTest, RequestsThatDifferInEverythingEachGetTheTextTheyGetAlone) {
  const std::vector<Mixed> all = mixed_requests();
  for (const int32_t slots : {1, 4, 16}) {
    ToyTarget target(slots);
    HostDecoder decoder = decoder_on(target);
    const size_t before = all.size() * static_cast<size_t>(slots == 1 ? 0 : slots == 4 ? 1 : 2);
    for (size_t i = 0; i < all.size(); ++i) {
      DecodeRequest each = request(long_prompt(1 + i % 5, static_cast<TokenId>(i)),
                                   10 + static_cast<int32_t>(i), all[i].seed);
      each.rule = all[i].rule;
      each.make_drafter = all[i].drafter;
      EXPECT_EQ(decoder.submit(std::move(each)), static_cast<RequestId>(i));
    }
    EXPECT_EQ(decoder.drain().size(), all.size());
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_EQ(text(before + i),
                fixtures::plain_text(long_prompt(1 + i % 5, static_cast<TokenId>(i)), 10 + i,
                                     all[i].sampling, Random(all[i].seed)))
          << "request " << i << ", " << slots << " slots";
    EXPECT_EQ(target.num_free_slots(), slots);
  }
}

TEST_F(HostDecoderTest, ALongPromptEntersInChunksBesideTheTreesOfOthers) {
  ToyTarget target(2);
  HostDecoder decoder = decoder_on(target);
  decoder.submit(request({1, 2}, 40));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(decoder.step().empty());
  const size_t emitted = text(0).size();
  decoder.submit(request(long_prompt(300), 5));
  for (int i = 0; i < 3; ++i) decoder.step();  // 299 rows in chunks of 128
  EXPECT_EQ(text(0).size(), emitted + 3) << "nobody waits for the prompt";
  EXPECT_TRUE(text(1).empty());
  EXPECT_EQ(target.largest_chunk, static_cast<size_t>(HostDecoder::kPromptRows));
  decoder.drain();
  EXPECT_EQ(text(0), fixtures::plain_text({1, 2}, 40, kGreedy, Random(1)));
  EXPECT_EQ(text(1), fixtures::plain_text(long_prompt(300), 5, kGreedy, Random(1)));
}

TEST_F(HostDecoderTest, PromptsShareTheRowsOfAPassInTheOrderTheyCame) {
  ToyTarget target(3);
  HostDecoder decoder = decoder_on(target);
  for (TokenId i = 0; i < 3; ++i) decoder.submit(request(long_prompt(101, i), 4));
  decoder.step();  // 100 rows of the first, 28 of the second
  EXPECT_EQ(target.prompts_per_pass, (std::vector<size_t>{2}));
  decoder.drain();
  for (TokenId i = 0; i < 3; ++i)
    EXPECT_EQ(text(static_cast<size_t>(i)),
              fixtures::plain_text(long_prompt(101, i), 4, kGreedy, Random(1)));
}

/// Each row costs an eighth of the first.
StepCost eighths() {
  StepCost cost;
  for (int n = 0; n < 8; ++n) cost.relative.push_back(1 + 0.125 * n);
  return cost;
}

class BoundedPrompts : public HostDecoderTest {
 protected:
  ToyTarget target_{4};
  HostDecoder decoder_{target_, std::make_shared<GreedyRule>(), none(),
                       HostDecoderOptions{.cost = eighths(), .prompt_share = 1}};

  /// Rows of prompts in one more pass.
  size_t rows_of_step() {
    target_.largest_chunk = 0;
    decoder_.step();
    return target_.largest_chunk;
  }
};

TEST_F(BoundedPrompts, ALongPromptTakesOnlyItsShareBesideATree) {
  decoder_.submit(request({1, 2}, 60));
  decoder_.step();  // its prompt
  decoder_.submit(request(long_prompt(161), 4));
  EXPECT_EQ(rows_of_step(), 8U) << "eight rows cost what the tree's one does";
  EXPECT_EQ(rows_of_step(), 8U);
  EXPECT_EQ(text(0).size(), 2U) << "a token in each of these passes";
  decoder_.drain();
  EXPECT_EQ(text(1), fixtures::plain_text(long_prompt(161), 4, kGreedy, Random(1)));
}

TEST_F(BoundedPrompts, AloneItTakesAllOfAPass) {
  decoder_.submit(request(long_prompt(161), 4));
  EXPECT_EQ(rows_of_step(), static_cast<size_t>(HostDecoder::kPromptRows));
  EXPECT_EQ(rows_of_step(), 160U - static_cast<size_t>(HostDecoder::kPromptRows));
}

TEST_F(BoundedPrompts, AShortPromptEntersWholeAndOvertakesALongOne) {
  decoder_.submit(request({1, 2}, 60));
  decoder_.step();
  decoder_.submit(request(long_prompt(161), 4));
  decoder_.step();
  decoder_.submit(request(long_prompt(25), 4));
  EXPECT_EQ(rows_of_step(), 24U);
  EXPECT_EQ(target_.prompts_per_pass.back(), 1U);
  EXPECT_TRUE(text(2).empty());
  decoder_.step();
  EXPECT_EQ(text(2).size(), 1U) << "its first token while the long one still enters";
  EXPECT_TRUE(text(1).empty());
}

TEST_F(BoundedPrompts, ALongPromptThatHasWaitedIsNotOvertakenForEver) {
  decoder_.submit(request({1, 2}, 400));
  decoder_.step();
  decoder_.submit(request(long_prompt(101), 4));
  int passes = 0;
  for (; text(1).empty() && passes < 100; ++passes) {
    if (decoder_.num_free() > 0) decoder_.submit(request(long_prompt(31), 1));  // again and again
    decoder_.step();
  }
  EXPECT_LT(passes, 60);
}

TEST_F(HostDecoderTest, ACancelledRequestGivesItsSlotBackAtOnceAndEmitsNoMore) {
  ToyTarget target(1);
  HostDecoder decoder = decoder_on(target);
  const RequestId running = decoder.submit(request({1, 2}, 40));
  const RequestId waiting = decoder.submit(request({2, 2}, 40));
  const RequestId last = decoder.submit(request({3, 2}, 6));
  for (int i = 0; i < 4; ++i) decoder.step();
  EXPECT_EQ(decoder.num_running(), 1);
  EXPECT_EQ(decoder.num_waiting(), 2);
  EXPECT_EQ(decoder.num_free(), 0);

  const auto stats = decoder.cancel(running);
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->finish, FinishReason::Cancelled);
  EXPECT_EQ(stats->emitted, 3);
  EXPECT_EQ(target.num_free_slots(), 1);
  ASSERT_TRUE(decoder.cancel(waiting));
  EXPECT_FALSE(decoder.cancel(waiting)) << "once";
  EXPECT_FALSE(decoder.cancel(99));

  const auto ended = decoder.drain();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].id, last);
  EXPECT_EQ(text(0).size(), 3U);
  EXPECT_TRUE(text(1).empty());
  EXPECT_EQ(text(2), fixtures::plain_text({3, 2}, 6, kGreedy, Random(1)));
  EXPECT_TRUE(decoder.idle());
}

TEST_F(HostDecoderTest, WhatFailsInOneRequestLeavesTheOthersAsTheyWere) {
  struct FailingRule : GreedyRule {
    Acceptance accept(const CandidateTree& tree, const TargetLogits& logits, int64_t root_position,
                      const Random& random) const override {
      if (root_position == 6) throw std::runtime_error("rule failed");
      return GreedyRule::accept(tree, logits, root_position, random);
    }
  };
  ToyTarget target(5);
  HostDecoder decoder = decoder_on(target);
  decoder.submit(request({1, 2}, 20));
  DecodeRequest bad_drafter = request({1, 3}, 20);
  bad_drafter.make_drafter = failing(5);
  decoder.submit(std::move(bad_drafter));
  DecodeRequest no_drafter = request({1, 4}, 20);
  no_drafter.make_drafter = []() -> std::unique_ptr<Drafter> {
    throw std::runtime_error("no drafter");
  };
  decoder.submit(std::move(no_drafter));
  DecodeRequest bad_rule = request({1, 5}, 20);
  bad_rule.rule = std::make_shared<FailingRule>();
  decoder.submit(std::move(bad_rule));
  DecodeRequest bad_callback = request({1, 6}, 20);
  int calls = 0;
  bad_callback.emit = [&calls](const EmittedToken&) -> bool {
    if (++calls == 3) throw std::runtime_error("callback failed");
    return true;
  };
  decoder.submit(std::move(bad_callback));

  const std::vector<std::string> expected = {"", "drafter failed", "no drafter", "rule failed",
                                             "callback failed"};
  const auto ended = decoder.drain();
  ASSERT_EQ(ended.size(), expected.size());
  for (const FinishedRequest& each : ended) {
    const std::string& why = expected.at(static_cast<size_t>(each.id));
    EXPECT_EQ(each.error == nullptr, why.empty());
    EXPECT_EQ(each.stats.finish == FinishReason::Failed, !why.empty());
    EXPECT_EQ(what(each.error), why);
  }
  EXPECT_EQ(text(0), fixtures::plain_text({1, 2}, 20, kGreedy, Random(1)));
  EXPECT_EQ(text(1).size(), 3U) << "what was emitted stands";
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(target.num_free_slots(), 5);
}

TEST_F(HostDecoderTest, APassThatFailsEndsItsSequencesAndTheDecoderGoesOn) {
  ToyTarget target(2);
  HostDecoder decoder = decoder_on(target);
  decoder.submit(request({1, 2}, 20));
  for (int i = 0; i < 3; ++i) decoder.step();
  decoder.submit(request({1, 3}, 20));
  target.fail_prefill = true;
  const auto ended = decoder.step();
  ASSERT_EQ(ended.size(), 2U);
  for (const FinishedRequest& each : ended) EXPECT_NE(each.error, nullptr);
  EXPECT_TRUE(decoder.idle());
  EXPECT_EQ(target.num_free_slots(), 2);

  target.fail_prefill = false;
  decoder.submit(request({1, 4}, 20));
  decoder.drain();
  EXPECT_EQ(text(2), fixtures::plain_text({1, 4}, 20, kGreedy, Random(1)));
}

TEST_F(HostDecoderTest, ARequestThatCannotRunIsRefusedAndTheOthersRunOn) {
  ToyTarget target(1, 16);
  HostDecoder decoder = decoder_on(target);
  decoder.submit(request({1, 2}, 6));
  decoder.step();
  EXPECT_EQ(fixtures::error_text([&] { decoder.submit(request(long_prompt(17), 4)); }),
            "the prompt has 17 tokens, expected at most 16; shorten the prompt or raise "
            "backbone.context");
  EXPECT_EQ(fixtures::error_text([&] { decoder.submit(request({1}, 0)); }),
            "the request has limits.max_new_tokens = 0, expected at least 1; raise it");
  EXPECT_EQ(fixtures::error_text([&] { decoder.submit(request({}, 4)); }),
            "the prompt has no tokens, expected at least one; give a text to continue");
  decoder.drain();
  EXPECT_EQ(text(0), fixtures::plain_text({1, 2}, 6, kGreedy, Random(1)));
}

TEST_F(HostDecoderTest, ACallbackThatCallsTheDecoderEndsItsRequestAlone) {
  ToyTarget target(4);
  HostDecoder decoder = decoder_on(target);
  using Call = std::function<void(HostDecoder&)>;
  const std::vector<Call> calls{[](HostDecoder& d) { d.step(); },
                                [](HostDecoder& d) { d.cancel(0); },
                                [this](HostDecoder& d) {
                                  d.submit(request({1, 2}, 3));
                                }};
  for (const Call& call : calls) {
    DecodeRequest each = request({2, 2}, 9);
    each.emit = [&](const EmittedToken&) {
      call(decoder);
      return true;
    };
    decoder.submit(std::move(each));
  }
  decoder.submit(request({1, 2}, 6));
  const auto ended = decoder.drain();
  ASSERT_EQ(ended.size(), calls.size() + 1);
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(ended[i].stats.finish, FinishReason::Failed);
    EXPECT_NE(what(ended[i].error).find("while a step runs, expected"), std::string::npos);
  }
  EXPECT_EQ(text(calls.size()), fixtures::plain_text({1, 2}, 6, kGreedy, Random(1)));
  EXPECT_EQ(target.num_free_slots(), 4);
}

TEST_F(HostDecoderTest, ADecoderThatGoesAwayGivesItsSlotsBack) {
  ToyTarget target(3);
  {
    HostDecoder decoder = decoder_on(target);
    for (TokenId i = 0; i < 5; ++i) decoder.submit(request({i, 1}, 9));
    decoder.step();
    EXPECT_EQ(target.num_free_slots(), 0);
  }
  EXPECT_EQ(target.num_free_slots(), 3);
}

TEST_F(HostDecoderTest, AnIdleDecoderDoesNothing) {
  ToyTarget target(1);
  HostDecoder decoder = decoder_on(target);
  EXPECT_TRUE(decoder.step().empty());
  EXPECT_TRUE(decoder.drain().empty());
  EXPECT_EQ(target.num_passes, 0);
}

TEST_F(HostDecoderTest, APromptStandsAloneWhereRowsDependOnTheirNeighbors) {
  struct Dependent : ToyTarget {
    using ToyTarget::ToyTarget;
    bool rows_are_independent() const override { return false; }
  } target(2);
  HostDecoder decoder = decoder_on(target);
  decoder.submit(request({1, 2}, 10));
  decoder.step();
  decoder.submit(request(long_prompt(150), 3));
  decoder.drain();
  for (size_t i = 0; i < target.prompts_per_pass.size(); ++i)
    EXPECT_EQ(target.prompts_per_pass[i] * target.sequences_per_pass[i], 0U) << i;
  EXPECT_EQ(text(1), fixtures::plain_text(long_prompt(150), 3, kGreedy, Random(1)));
}

TEST_F(HostDecoderTest, WhereAPromptStandsAloneTextsGoOnMeanwhile) {
  struct Dependent : ToyTarget {
    using ToyTarget::ToyTarget;
    bool rows_are_independent() const override { return false; }
  } target(3);
  HostDecoder decoder = decoder_on(target, {.prompt_share = 0.25});
  decoder.submit(request({1, 2}, 40));
  decoder.step();
  for (int i = 0; i < 2; ++i) decoder.submit(request(long_prompt(150), 3));
  for (size_t tokens = text(0).size(); tokens < 40; ++tokens) {
    const auto passes = target.num_passes;
    decoder.step();
    EXPECT_LE(target.num_passes - passes, 2);
    EXPECT_EQ(text(0).size(), tokens + 1);
  }
  decoder.drain();
  for (size_t i = 0; i < target.prompts_per_pass.size(); ++i)
    EXPECT_EQ(target.prompts_per_pass[i] * target.sequences_per_pass[i], 0U) << i;
  EXPECT_EQ(text(1), fixtures::plain_text(long_prompt(150), 3, kGreedy, Random(1)));
  EXPECT_EQ(text(2), text(1));
}

TEST_F(HostDecoderTest, AStepIsSeenBeforeItsTokens) {
  ToyTarget target(1, 64);
  HostDecoder decoder = decoder_on(target);
  DecodeRequest watched = request({1, 2, 3}, 5);
  size_t steps = 0;
  watched.watch = [&](const StepView& view) {
    EXPECT_EQ(text(0).size(), steps) << "a tree of one node emits one token a step";
    EXPECT_EQ(view.tree.size(), 1);
    EXPECT_TRUE(view.accepted.path.empty());
    ++steps;
  };
  decoder.submit(std::move(watched));
  const auto ended = decoder.drain();
  EXPECT_EQ(steps, 5U);
  EXPECT_EQ(ended[0].stats.steps, 5);
}

}  // namespace
}  // namespace medusa
