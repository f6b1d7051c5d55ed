// The decoder over many sequences: slots, refill, errors.
#include <gtest/gtest.h>

#include "infer/decoder.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "tests/base/error_text.h"
#include "tests/infer/toy_drafters.h"

namespace medusa {
namespace {

using fixtures::kWarm;

/// Requests of different prompts, lengths and seeds.
struct Batch {
  std::vector<std::vector<TokenId>> prompts;
  std::vector<DecodeLimits> limits;
  std::vector<std::vector<TokenId>> texts;

  explicit Batch(size_t size) : texts(size) {
    for (size_t i = 0; i < size; ++i) {
      const auto n = static_cast<TokenId>(i);
      prompts.push_back({n % 7});
      for (TokenId t = 0; t < n % 4; ++t) prompts.back().push_back((n + 3 * t) % 7);
      limits.push_back({1 + (n * 11) % 17, 3 + n % 9,
                        i % 3 == 0 ? std::vector<TokenId>{5} : std::vector<TokenId>{}});
    }
  }
  DecodeRequest request(size_t i) {
    return fixtures::toy_request(prompts.at(i), limits.at(i), 100 + i, texts.at(i));
  }
};

/// Chains that are right for the seed of whoever asks, as the seeds differ here.
DrafterFactory seeded_drafter() {
  return [] {
    return std::make_unique<fixtures::ToyDrafter>(
        [](const DraftContext& c, const Random& random, CandidateTree& tree) {
          const auto next = [&](std::span<const TokenId> context) {
            return fixtures::plain_choice(context, kWarm, random);
          };
          fixtures::add_chain(c, next, static_cast<int32_t>(c.tokens.size() % 4), 0, tree);
        });
  };
}

TEST(DecoderBatch, EachTextIsTheOneDecodedAlone) {
  constexpr size_t kRequests = 23;
  Batch alone(kRequests);
  std::vector<DecodeStats> stats_alone;
  for (size_t i = 0; i < kRequests; ++i) {
    fixtures::ToyTarget target;
    stats_alone.push_back(
        decode_one(target, MatchRule(kWarm), seeded_drafter(), alone.request(i)).stats);
  }
  for (const int32_t slots : {1, 3, 8, 40}) {
    fixtures::ToyTarget target(slots);
    Batch batch(kRequests);
    size_t taken = 0;
    std::vector<int> finished(kRequests, 0);
    decode(
        target, MatchRule(kWarm), seeded_drafter(),
        [&]() -> std::optional<DecodeRequest> {
          if (taken == kRequests) return std::nullopt;
          return batch.request(taken++);
        },
        [&](size_t i, const DecodeStats& stats) {
          ++finished.at(i);
          EXPECT_EQ(stats.emitted, static_cast<int64_t>(batch.texts[i].size()));
          EXPECT_EQ(stats.steps, stats_alone[i].steps);
          EXPECT_EQ(stats.accepted, stats_alone[i].accepted);
          EXPECT_EQ(stats.finish, stats_alone[i].finish);
          return true;
        });
    EXPECT_EQ(batch.texts, alone.texts) << slots << " slots";
    EXPECT_EQ(finished, std::vector<int>(kRequests, 1));
    EXPECT_EQ(target.num_free_slots(), slots);
  }
}

TEST(DecoderBatch, AFreeSlotIsRefilledBeforeTheNextPass) {
  fixtures::ToyTarget target(2);
  std::vector<std::vector<TokenId>> texts(4);
  const std::vector<int32_t> lengths{1, 4, 2, 1};
  size_t taken = 0;
  std::vector<size_t> order;
  decode(
      target, GreedyRule(), [] { return std::make_unique<NoneDrafter>(); },
      [&]() -> std::optional<DecodeRequest> {
        if (taken == 4) return std::nullopt;
        const size_t i = taken++;
        return fixtures::toy_request({1, 2}, {lengths[i], 4, {}}, 1, texts[i]);
      },
      [&](size_t i, const DecodeStats&) {
        order.push_back(i);
        return true;
      });
  // A prompt of two tokens has one row, which runs in the pass before its first tree.
  EXPECT_EQ(target.prompts_per_pass, (std::vector<size_t>{2, 0, 1, 0, 0, 1, 0}));
  EXPECT_EQ(target.sequences_per_pass, (std::vector<size_t>{0, 2, 1, 2, 2, 0, 1}));
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 3}));
}

TEST(DecoderBatch, NextIsNotAskedAgainAfterItsEnd) {
  fixtures::ToyTarget target(3);
  int asked = 0;
  decode(
      target, GreedyRule(), [] { return std::make_unique<NoneDrafter>(); },
      [&]() -> std::optional<DecodeRequest> {
        ++asked;
        return std::nullopt;
      },
      [](size_t, const DecodeStats&) { return true; });
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(target.num_passes, 0);
}

TEST(DecoderBatch, ATargetWithoutAFreeSlotIsABug) {
  fixtures::ToyTarget target(1);
  const int32_t taken = target.open();
  std::vector<TokenId> text;
  EXPECT_THROW(decode_one(
                   target, GreedyRule(), [] { return std::make_unique<NoneDrafter>(); },
                   fixtures::toy_request({1}, {4, 4, {}}, 1, text)),
               std::logic_error);
  target.close(taken);
}

TEST(DecoderBatch, FinishedReturningFalseClosesAllSlots) {
  fixtures::ToyTarget target(3);
  Batch batch(9);
  size_t taken = 0, finished = 0;
  decode(
      target, GreedyRule(), [] { return std::make_unique<NoneDrafter>(); },
      [&]() -> std::optional<DecodeRequest> { return batch.request(taken++); },
      [&](size_t, const DecodeStats&) { return ++finished < 2; });
  EXPECT_EQ(finished, 2U);
  EXPECT_EQ(target.num_free_slots(), 3);
}

TEST(DecoderBatch, DraftersAreToldHowManyShareThePass) {
  fixtures::ToyTarget target(3);
  Batch batch(4);
  std::vector<int32_t> seen;
  const DrafterFactory drafter = [&seen] {
    return std::make_unique<fixtures::ToyDrafter>(
        [&seen](const DraftContext& c, const Random&, CandidateTree&) {
          seen.push_back(c.num_sequences);
        });
  };
  size_t taken = 0;
  decode(
      target, GreedyRule(), drafter,
      [&]() -> std::optional<DecodeRequest> {
        if (taken == 4) return std::nullopt;
        batch.limits[taken] = {.max_new_tokens = taken == 3 ? 3 : 1, .eos = {}};
        return batch.request(taken++);
      },
      [](size_t, const DecodeStats&) { return true; });
  // The first prompt has no rows to run, the next two run theirs beside its tree.
  EXPECT_EQ(seen, (std::vector<int32_t>{1, 2, 2, 1, 1, 1}));
}

TEST(DecoderBatch, AnExceptionLeavesAllSlotsClosed) {
  const auto decode_three = [](fixtures::ToyTarget& target, const DrafterFactory& drafter,
                               bool fail_second_prefill) {
    Batch batch(4);
    size_t taken = 1;  // request 0 has a prompt of one token
    decode(
        target, GreedyRule(), drafter,
        [&]() -> std::optional<DecodeRequest> {
          target.fail_prefill |= fail_second_prefill && taken == 2;
          return batch.request(taken++);
        },
        [](size_t, const DecodeStats&) { return true; });
  };
  const DrafterFactory throws_in_propose = [] {
    return std::make_unique<fixtures::ToyDrafter>(
        [](const DraftContext& c, const Random&, CandidateTree&) {
          if (c.tokens.size() > 4) throw std::runtime_error("drafter failed");
        });
  };
  const DrafterFactory cannot_be_made = []() -> std::unique_ptr<Drafter> {
    throw std::runtime_error("no drafter");
  };
  const DrafterFactory none = [] { return std::make_unique<NoneDrafter>(); };

  fixtures::ToyTarget target(3);
  EXPECT_THROW(decode_three(target, throws_in_propose, false), std::runtime_error);
  EXPECT_EQ(target.num_free_slots(), 3);
  EXPECT_THROW(decode_three(target, cannot_be_made, false), std::runtime_error);
  EXPECT_EQ(target.num_free_slots(), 3);
  EXPECT_THROW(decode_three(target, none, true), std::runtime_error);
  EXPECT_EQ(target.num_free_slots(), 3);
}

class ThrowingRule : public GreedyRule {
 public:
  Acceptance accept(const CandidateTree& tree, const TargetLogits& logits, int64_t root_position,
                    const Random& random) const override {
    if (root_position == 5) throw std::runtime_error("rule failed");
    return GreedyRule::accept(tree, logits, root_position, random);
  }
};

TEST(DecoderBatch, AnExceptionOfARulePassesThroughAndLeavesAllSlotsClosed) {
  fixtures::ToyTarget target(3);
  Batch batch(9);
  size_t taken = 0;
  const auto next = [&]() -> std::optional<DecodeRequest> {
    batch.limits.at(taken).max_new_tokens = 20;
    return batch.request(taken++);
  };
  EXPECT_THROW(decode(
                   target, ThrowingRule(), [] { return std::make_unique<NoneDrafter>(); }, next,
                   [](size_t, const DecodeStats&) { return true; }),
               std::runtime_error);
  EXPECT_EQ(target.num_free_slots(), 3);
}

TEST(DecoderBatch, APromptThatCannotRunIsTheUsersError) {
  const auto decode_prompt = [](size_t length) {
    fixtures::ToyTarget target(1, 16);
    std::vector<TokenId> text;
    const std::vector<TokenId> prompt(length, 1);
    decode_one(
        target, GreedyRule(), [] { return std::make_unique<NoneDrafter>(); },
        fixtures::toy_request(prompt, {4, 4, {}}, 1, text));
  };
  EXPECT_EQ(fixtures::error_text([&] { decode_prompt(0); }),
            "the prompt has no tokens, expected at least one; give a text to continue");
  EXPECT_EQ(fixtures::error_text([&] { decode_prompt(17); }),
            "the prompt has 17 tokens, expected at most 16; shorten the prompt or raise "
            "backbone.context");
  EXPECT_EQ(fixtures::error_text([&] { decode_prompt(16); }), "(no error)");
}

}  // namespace
}  // namespace medusa
