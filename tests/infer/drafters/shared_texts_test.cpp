#include "infer/drafters/shared_texts.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <map>
#include <optional>

#include "tests/base/under_asan.h"
#include "tests/infer/random_texts.h"

namespace medusa {
namespace {

using Text = std::vector<TokenId>;

constexpr int64_t kMuch = 100'000'000;

/// What follows the longest known end of a text, with its counts, by looking everywhere.
std::pair<int32_t, std::map<TokenId, int64_t>> looked_for(const std::vector<Text>& texts,
                                                          const Text& end, int32_t most) {
  for (auto length = std::min<std::ptrdiff_t>(most, std::ssize(end));
       length >= SharedTexts::kKeyTokens; --length) {
    std::map<TokenId, int64_t> next;
    for (const Text& text : texts)
      for (auto at = text.begin();; ++at) {
        at = std::search(at, text.end(), end.end() - length, end.end());
        if (at == text.end() || at + length == text.end()) break;
        ++next[at[length]];
      }
    if (!next.empty()) return {static_cast<int32_t>(length), next};
  }
  return {SharedTexts::kKeyTokens, {}};
}

std::map<TokenId, int64_t> counts_of(const SharedTexts& texts, const SharedTexts::Places& run) {
  std::map<TokenId, int64_t> out;
  for (const SharedTexts::Next& next : texts.continuations(run)) {
    EXPECT_EQ(next.places.length, run.length + 1);
    out[next.token] = next.places.count();
  }
  return out;
}

TEST(SharedTexts, FindsWhatFollowedTheLongestKnownEnd) {
  const std::vector<Text> all = fixtures::random_texts(5, 12, 15, 3);
  SharedTexts shared(kMuch);
  std::vector<Text> kept;
  for (const Text& text : all) {
    const auto stands = [&](const Text& in) {
      return std::search(in.begin(), in.end(), text.begin(), text.end()) != in.end();
    };
    if (std::ssize(text) <= SharedTexts::kKeyTokens ||
        std::any_of(kept.begin(), kept.end(), stands))
      continue;
    kept.push_back(text);
    shared.add(text);
  }
  int64_t found = 0;
  for (const Text& end : fixtures::random_texts(6, 300, 8, 3))
    for (const int32_t most : {3, 5, 16}) {
      const auto [length, next] = looked_for(kept, end, most);
      const SharedTexts::Places run = shared.longest_match(end, most);
      EXPECT_EQ(run.length, length);
      EXPECT_EQ(counts_of(shared, run), next);
      found += next.empty() ? 0 : 1;
    }
  EXPECT_GT(found, 300);
}

TEST(SharedTexts, ALongPathIsFollowedToTheEndOfItsText) {
  SharedTexts shared(kMuch);
  shared.add({1, 2, 3, 4, 5});
  SharedTexts::Places run = shared.longest_match(Text{9, 1, 2, 3}, 16);
  for (const TokenId token : {4, 5}) {
    const auto next = shared.continuations(run);
    ASSERT_EQ(next.size(), 1U);
    EXPECT_EQ(next[0].token, token);
    run = next[0].places;
  }
  EXPECT_TRUE(shared.continuations(run).empty());
  EXPECT_EQ(shared.longest_match(Text{2, 3}, 16).count(), 0) << "too short a run";
}

TEST(SharedTexts, WhatStandsInAnotherIsNotKeptTwice) {
  SharedTexts shared(kMuch);
  const Text text{1, 2, 3, 4, 5, 6};
  shared.add(text);
  const int64_t bytes = shared.use().bytes;
  shared.add({1, 2, 3});
  shared.add({1, 2, 3, 4, 5});
  shared.add({2, 3, 4, 5, 6});
  shared.add(text);
  EXPECT_EQ(shared.use().texts, 1);
  EXPECT_EQ(shared.use().bytes, bytes);
  shared.add({1, 2, 3, 4, 5, 7});
  EXPECT_EQ(shared.use().texts, 2);
}

/// Texts of a hundred tokens that nothing else has.
Text own_text(TokenId number) {
  Text out;
  for (TokenId i = 0; i < 100; ++i) out.push_back(1000 * number + i);
  return out;
}
bool is_kept(const SharedTexts& shared, TokenId number) {
  const Text text = own_text(number);
  return shared.longest_match(std::span(text).first(50), 16).count() > 0;
}

TEST(SharedTexts, TheLeastUsedIsForgotten) {
  SharedTexts shared(SharedTexts::kFewestBytes);
  TokenId most = 0;
  while (shared.use().texts == most) shared.add(own_text(++most));  // until one was forgotten
  EXPECT_GE(most, 4);
  EXPECT_FALSE(is_kept(shared, 1));
  EXPECT_TRUE(is_kept(shared, 2));
  const Text second = own_text(2);
  shared.count_use(shared.longest_match(std::span(second).first(50), 16));
  shared.add(own_text(most + 1));
  EXPECT_TRUE(is_kept(shared, 2)) << "it was of use";
  EXPECT_FALSE(is_kept(shared, 3));
  EXPECT_TRUE(is_kept(shared, most + 1));
  EXPECT_EQ(shared.use().texts, most - 1);
  for (TokenId number = 0; number < 500; ++number) {
    shared.add(own_text(number));
    EXPECT_LE(shared.use().bytes, SharedTexts::kFewestBytes);
  }
  const SharedTexts::Places gone = shared.longest_match(std::span(second).first(50), 16);
  EXPECT_EQ(gone.count(), 0);
  Text large;
  for (TokenId i = 0; i < 100000; ++i) large.push_back(i);
  const int64_t texts = shared.use().texts;
  shared.add(large);
  EXPECT_EQ(shared.use().texts, texts) << "one that never fits replaces nothing";
}

TEST(SharedTexts, ARunThatIsEverywhereHasItsNewestPlaces) {
  SharedTexts shared(kMuch);
  constexpr auto kMost = static_cast<TokenId>(SharedTexts::kMostPlaces);
  for (TokenId number = 0; number < 3 * kMost; ++number) shared.add({1, 2, 3, 100 + number});
  const SharedTexts::Places run = shared.longest_match(Text{1, 2, 3}, 16);
  ASSERT_EQ(run.count(), kMost);
  EXPECT_EQ(shared.continuations(run).front().token, 100 + 2 * kMost);
  EXPECT_EQ(shared.continuations(run).back().token, 100 + 3 * kMost - 1);
  SharedTexts small(SharedTexts::kFewestBytes);
  for (TokenId number = 0; number < 10000; ++number) {  // in no time, though they are alike
    Text alike{100 + number};
    while (alike.size() < 50) alike.push_back(7);
    small.add(std::move(alike));
    ASSERT_LE(small.use().bytes, SharedTexts::kFewestBytes);
  }
  EXPECT_GT(small.use().texts, 50);
}

#ifndef MEDUSA_ASAN
TEST(SharedTexts, ItsBytesAreThoseOfTheSystem) {
  const auto taken = [] { return static_cast<int64_t>(::mallinfo2().uordblks); };
  for (const int64_t vocab : {40, 40000}) {
    const auto texts = fixtures::random_texts(7, 400, 400, vocab);
    const int64_t before = taken();
    std::optional<SharedTexts> shared(kMuch);
    for (const Text& text : texts) shared->add(text);
    const auto real = static_cast<double>(taken() - before);
    const auto told = static_cast<double>(shared->use().bytes);
    EXPECT_GT(told, 0.6 * real) << vocab;
    EXPECT_LT(told, 1.6 * real) << vocab;
  }
}
#endif

}  // namespace
}  // namespace medusa
