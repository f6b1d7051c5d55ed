#include "infer/decoder.h"

#include <gtest/gtest.h>

#include <numeric>

#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "tests/infer/toy_drafters.h"

namespace medusa {
namespace {

using fixtures::decode_toy;
using fixtures::Decoded;

using fixtures::kGreedy;
using fixtures::kPrompt;
using fixtures::kWarm;

fixtures::Continuation continuation(const SamplingConfig& sampling, uint64_t seed) {
  return [=](std::span<const TokenId> context) {
    return fixtures::plain_choice(context, sampling, Random(seed));
  };
}

/// Prompt and text without the last token: what the cache holds when a sequence ends.
std::vector<TokenId> all_but_last(const std::vector<TokenId>& prompt,
                                  const std::vector<TokenId>& text) {
  std::vector<TokenId> out = prompt;
  out.insert(out.end(), text.begin(), text.end());
  out.pop_back();
  return out;
}

int64_t sum_of_histogram(const DecodeStats& stats, bool weighted) {
  int64_t sum = 0;
  for (size_t n = 0; n < stats.emitted_per_step.size(); ++n)
    sum += stats.emitted_per_step[n] * (weighted ? static_cast<int64_t>(n) : 1);
  return sum;
}

TEST(Decoder, GreedyTextIsTheSameForEveryDrafter) {
  const auto plain = fixtures::plain_text(kPrompt, 60, kGreedy, Random(1));
  for (const auto& [name, drafter] : fixtures::toy_drafters(continuation(kGreedy, 1))) {
    const Decoded run = decode_toy(GreedyRule(), drafter, kPrompt, {60, 12, {}});
    EXPECT_EQ(run.text, plain) << name;
    EXPECT_EQ(run.cached, all_but_last(kPrompt, plain)) << name;
    EXPECT_EQ(run.stats.finish, FinishReason::Length) << name;
  }
}

TEST(Decoder, MatchGivesTheTokensOfPlainSamplingForEveryDrafter) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto plain = fixtures::plain_text(kPrompt, 40, kWarm, Random(seed));
    for (const auto& [name, drafter] : fixtures::toy_drafters(continuation(kWarm, seed))) {
      const Decoded run = decode_toy(MatchRule(kWarm), drafter, kPrompt, {40, 12, {}}, seed);
      EXPECT_EQ(run.text, plain) << name << ", seed " << seed;
      EXPECT_EQ(run.cached, all_but_last(kPrompt, plain)) << name << ", seed " << seed;
    }
  }
}

TEST(Decoder, StepsSavedAreThoseOfTheAcceptedCandidates) {
  auto drafters = fixtures::toy_drafters(continuation(kGreedy, 1));
  const auto stats = [&](const char* name) {
    return decode_toy(GreedyRule(), drafters.at(name), kPrompt, {60, 12, {}}).stats;
  };
  EXPECT_EQ(stats("none").steps, 60);
  EXPECT_EQ(stats("none").proposed, 0);
  EXPECT_EQ(stats("wrong chain").steps, 60);
  EXPECT_EQ(stats("wrong chain").accepted, 0);
  EXPECT_EQ(stats("wrong chain").proposed, 180);
  EXPECT_EQ(stats("perfect chain").steps, 10);
  EXPECT_EQ(stats("perfect chain").accepted, 50);
  // One candidate a step may be accepted, whatever the nodes behind num_verify hold.
  EXPECT_EQ(stats("draft-only nodes").steps, 30);
  EXPECT_EQ(stats("draft-only nodes").proposed, 30);
}

TEST(Decoder, EmittedPerStepAddsUp) {
  for (const auto& [name, drafter] : fixtures::toy_drafters(continuation(kGreedy, 1))) {
    const DecodeStats stats = decode_toy(GreedyRule(), drafter, kPrompt, {61, 12, {}}).stats;
    EXPECT_EQ(stats.emitted, 61) << name;
    EXPECT_EQ(sum_of_histogram(stats, true), stats.emitted) << name;
    EXPECT_EQ(sum_of_histogram(stats, false), stats.steps) << name;
    EXPECT_EQ(stats.emitted_per_step.at(0), 0) << name;
  }
}

TEST(Decoder, EosInsideAnAcceptedRunCutsExactlyThere) {
  const auto plain = fixtures::plain_text(kPrompt, 60, kGreedy, Random(1));
  int64_t found = 0;
  for (TokenId eos = 0; eos < fixtures::kToyVocab; ++eos) {
    const auto end = std::find(plain.begin(), plain.end(), eos);
    const bool ends = end != plain.end();
    found += ends ? 1 : 0;
    const std::vector<TokenId> expected(plain.begin(), ends ? end + 1 : end);
    for (const auto& [name, drafter] : fixtures::toy_drafters(continuation(kGreedy, 1))) {
      const Decoded run = decode_toy(GreedyRule(), drafter, kPrompt, {60, 12, {eos, 99}});
      EXPECT_EQ(run.text, expected) << name << ", eos " << eos;
      EXPECT_EQ(run.cached, all_but_last(kPrompt, expected)) << name << ", eos " << eos;
      EXPECT_EQ(run.stats.finish, ends ? FinishReason::Eos : FinishReason::Length) << name;
    }
  }
  EXPECT_GE(found, 2);
}

TEST(Decoder, EmitReturningFalseEndsTheTextInsideARun) {
  const auto plain = fixtures::plain_text(kPrompt, 60, kGreedy, Random(1));
  for (const auto& [name, drafter] : fixtures::toy_drafters(continuation(kGreedy, 1)))
    for (size_t wanted = 1; wanted <= 8; ++wanted) {
      fixtures::ToyTarget target;
      std::vector<TokenId> text;
      DecodeRequest request = fixtures::toy_request(kPrompt, {60, 12, {}}, 1, text);
      request.emit = [&, check = request.emit](const EmittedToken& token) {
        return check(token) && text.size() < wanted;
      };
      const DecodeStats stats = decode_one(target, GreedyRule(), drafter, request).stats;
      const std::vector<TokenId> expected(plain.begin(),
                                          plain.begin() + static_cast<std::ptrdiff_t>(wanted));
      EXPECT_EQ(text, expected) << name;
      EXPECT_EQ(target.closed.at(0), all_but_last(kPrompt, expected)) << name;
      EXPECT_EQ(stats.finish, FinishReason::Stopped) << name;
      EXPECT_EQ(stats.emitted, static_cast<int64_t>(wanted)) << name;
    }
}

TEST(Decoder, MaxNewTokensCutsInsideARun) {
  for (const auto& [name, drafter] : fixtures::toy_drafters(continuation(kGreedy, 1)))
    for (int32_t count = 1; count <= 13; ++count) {
      const Decoded run = decode_toy(GreedyRule(), drafter, kPrompt, {count, 12, {}});
      EXPECT_EQ(run.text,
                fixtures::plain_text(kPrompt, static_cast<size_t>(count), kGreedy, Random(1)))
          << name;
      EXPECT_EQ(run.cached, all_but_last(kPrompt, run.text)) << name;
      EXPECT_EQ(run.stats.finish, FinishReason::Length) << name;
    }
}

TEST(Decoder, TextEndsWhenTheCacheIsExactlyFull) {
  constexpr int64_t kCacheRows = 17;
  const auto plain = fixtures::plain_text(kPrompt, 60, kGreedy, Random(1));
  for (const auto& [name, drafter] : fixtures::toy_drafters(continuation(kGreedy, 1))) {
    const Decoded run = decode_toy(GreedyRule(), drafter, kPrompt, {60, 12, {}}, 1, kCacheRows);
    EXPECT_EQ(run.stats.finish, FinishReason::Context) << name;
    EXPECT_EQ(run.cached.size(), static_cast<size_t>(kCacheRows)) << name;
    EXPECT_EQ(run.text, std::vector<TokenId>(plain.begin(), plain.begin() + 15)) << name;
  }
}

TEST(Decoder, APromptThatFillsTheCacheStillGetsOneToken) {
  for (const auto& [name, drafter] : fixtures::toy_drafters(continuation(kGreedy, 1))) {
    const Decoded run = decode_toy(GreedyRule(), drafter, kPrompt, {60, 12, {}}, 1, 3);
    EXPECT_EQ(run.text, fixtures::plain_text(kPrompt, 1, kGreedy, Random(1))) << name;
    EXPECT_EQ(run.stats.finish, FinishReason::Context) << name;
  }
}

TEST(Decoder, APromptOfOneTokenNeedsNoPrefill) {
  const auto plain = fixtures::plain_text({4}, 30, kGreedy, Random(1));
  for (const auto& [name, drafter] : fixtures::toy_drafters(continuation(kGreedy, 1))) {
    const Decoded run = decode_toy(GreedyRule(), drafter, {4}, {30, 12, {}});
    EXPECT_EQ(run.text, plain) << name;
    EXPECT_EQ(run.cached, all_but_last({4}, plain)) << name;
  }
}

TEST(Decoder, MaxNodesIsTheMostRowsOfAPass) {
  auto drafters = fixtures::toy_drafters(continuation(kGreedy, 1));
  for (const int32_t max_nodes : {1, 2, 7, 64}) {
    fixtures::ToyTarget target;
    std::vector<TokenId> text;
    decode_one(target, GreedyRule(), drafters.at("full tree"),
               fixtures::toy_request(kPrompt, {60, max_nodes, {}}, 1, text));
    EXPECT_EQ(target.largest_tree, max_nodes);
    EXPECT_EQ(text, fixtures::plain_text(kPrompt, 60, kGreedy, Random(1)));
  }
}

TEST(Decoder, ATreeThatBreaksTheContractIsABug) {
  const auto decode_tree = [](const CandidateTree& tree) {
    const DrafterFactory drafter = [&] {
      return std::make_unique<fixtures::ToyDrafter>(
          [&](const DraftContext&, const Random&, CandidateTree& out) { out = tree; });
    };
    decode_toy(GreedyRule(), drafter, kPrompt, {1, 2, {}});
  };
  EXPECT_THROW(decode_tree({{3, 1, 1}, {-1, 0, 0}, 3, {}}), std::logic_error) << "too many nodes";
  EXPECT_THROW(decode_tree({{2, 1}, {-1, 0}, 2, {}}), std::logic_error) << "another root";
  EXPECT_THROW(decode_tree({{3, 1}, {-1, 0}, 0, {}}), std::logic_error) << "no verify node";
  EXPECT_THROW(decode_tree({{3, 1}, {-1, 0}, 3, {}}), std::logic_error) << "num_verify beyond N";
}

}  // namespace
}  // namespace medusa
