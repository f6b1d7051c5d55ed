#include "infer/drafters/suffix_automaton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"

namespace medusa {
namespace {

using Text = std::vector<TokenId>;

constexpr int32_t kMaxContext = 7;

/// Where a string ends in the text, by looking everywhere: the index after its last token.
std::vector<size_t> ends_of(const Text& text, const Text& string) {
  std::vector<size_t> ends;
  for (size_t end = string.size(); end <= text.size(); ++end)
    if (std::equal(string.begin(), string.end(),
                   text.begin() + static_cast<std::ptrdiff_t>(end - string.size())))
      ends.push_back(end);
  return ends;
}

Text suffix(const Text& text, int32_t length) { return {text.end() - length, text.end()}; }

/// The longest suffix of at most so many tokens that occurs before the end too.
int32_t longest_by_scanning(const Text& text, int32_t max_length) {
  for (int32_t n = std::min(max_length, static_cast<int32_t>(text.size())); n > 0; --n)
    if (ends_of(text, suffix(text, n)).size() > 1) return n;
  return 0;
}

struct Followed {
  TokenId token;
  int64_t count, last;
  bool operator==(const Followed&) const = default;
};

std::vector<Followed> continuations_by_scanning(const Text& text, const Text& string) {
  std::map<TokenId, Followed> found;
  for (const size_t end : ends_of(text, string)) {
    if (end == text.size()) continue;
    Followed& each = found.try_emplace(text[end], Followed{text[end], 0, 0}).first->second;
    ++each.count;
    each.last = static_cast<int64_t>(end);
  }
  std::vector<Followed> out;
  for (const auto& [token, each] : found) out.push_back(each);
  std::sort(out.begin(), out.end(), [](const Followed& a, const Followed& b) {
    return a.count != b.count ? a.count > b.count : a.last > b.last;
  });
  return out;
}

std::vector<Followed> followed(const SuffixAutomaton& automaton, int32_t state) {
  std::vector<Followed> out;
  for (const auto& each : automaton.continuations(state))
    out.push_back({each.token, each.count, each.last});
  return out;
}

/// Compares all that the automaton says about the text's end with scanning.
void expect_right(const SuffixAutomaton& automaton, const Text& text) {
  for (const int32_t max_length : {1, 2, 3, 5}) {
    auto match = automaton.longest_match(max_length);
    ASSERT_EQ(match.length, longest_by_scanning(text, max_length)) << text.size();
    for (; match.length > 0; match = automaton.shorter(match)) {
      const Text string = suffix(text, match.length);
      ASSERT_EQ(followed(automaton, match.state), continuations_by_scanning(text, string));
      for (const auto& each : automaton.continuations(match.state)) {
        Text longer = string;
        longer.push_back(each.token);
        ASSERT_EQ(followed(automaton, each.state), continuations_by_scanning(text, longer));
      }
      // What is skipped on the way to the shorter match ends at the same places.
      const int32_t next = automaton.shorter(match).length;
      ASSERT_LT(next, match.length);
      ASSERT_EQ(ends_of(text, suffix(text, next + 1)), ends_of(text, string));
    }
  }
}

TEST(SuffixAutomaton, KnowsWhatScanningTheTextFinds) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const double alphabet = 1 + static_cast<double>(seed % 6);
    SuffixAutomaton automaton(kMaxContext);
    Text text;
    for (int64_t i = 0; i < 90; ++i) {
      text.push_back(static_cast<TokenId>(alphabet * Random(seed).uniform(RandomUse::Init, i)));
      automaton.append(text.back());
      expect_right(automaton, text);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(SuffixAutomaton, KnowsTextsThatRepeatThemselves) {
  for (const Text& period : {Text{5}, Text{1, 2}, Text{1, 1, 2}, Text{1, 2, 1, 3}}) {
    SuffixAutomaton automaton(kMaxContext);
    Text text;
    for (size_t i = 0; i < 60; ++i) {
      text.push_back(period[i % period.size()]);
      automaton.append(text.back());
      expect_right(automaton, text);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(SuffixAutomaton, AnEmptyTextMatchesNothing) {
  SuffixAutomaton automaton(3);
  EXPECT_EQ(automaton.longest_match(3).length, 0);
  EXPECT_TRUE(automaton.continuations(0).empty());
  automaton.append(7);
  EXPECT_EQ(automaton.longest_match(3).length, 0);
  EXPECT_EQ(automaton.size(), 1);
}

}  // namespace
}  // namespace medusa
