#include "infer/drafters/retrieval_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/base/error_text.h"
#include "tests/infer/expect_tree.h"
#include "tests/infer/random_texts.h"
#include "tests/infer/text_store_file.h"

namespace medusa {
namespace {

using fixtures::expect_tree;
using fixtures::TextStoreFile;
using Text = std::vector<TokenId>;

CandidateTree propose(const TextStore& store, const RetrievalConfig& config, const Text& text,
                      int32_t max_depth = 63, int32_t max_nodes = 64) {
  return RetrievalDrafter(store, config).propose({text, {}, max_depth, max_nodes}, Random(1));
}

const RetrievalConfig kShort{.store = {}, .max_match = 3, .min_match = 1, .nodes = 4};

TEST(RetrievalDrafter, ProposesWhatFollowedTheLastTokensInTheStore) {
  const TextStoreFile file({{1, 2, 3, 4, 5, 6}, {7, 8}});
  expect_tree(propose(file.store(), kShort, {9, 2, 3}), {3, 4, 5, 6}, {-1, 0, 1, 2});
  expect_tree(propose(file.store(), kShort, {9, 9}), {9}, {-1});
  expect_tree(propose(file.store(), kShort, {1, 8}), {8}, {-1});  // the end of a text
}

TEST(RetrievalDrafter, TheLongestRunDecides) {
  const TextStoreFile file({{2, 7}, {2, 7}, {2, 7}, {1, 2, 5}});
  expect_tree(propose(file.store(), kShort, {1, 2}), {2, 5}, {-1, 0});
  RetrievalConfig short_sighted = kShort;
  short_sighted.max_match = 1;
  expect_tree(propose(file.store(), short_sighted, {1, 2}), {2, 7, 5}, {-1, 0, 0});
  RetrievalConfig careful = kShort;
  careful.min_match = 3;
  expect_tree(propose(file.store(), careful, {1, 2}), {2}, {-1});
}

TEST(RetrievalDrafter, TheMostFrequentContinuationsAreTheTree) {
  // After 1: 2 three times (then 3 twice, 4 once), 5 twice (then 6 twice).
  const TextStoreFile file({{1, 2, 3}, {1, 2, 3}, {1, 2, 4}, {1, 5, 6}, {1, 5, 6}});
  expect_tree(propose(file.store(), kShort, {1}), {1, 2, 5, 3}, {-1, 0, 0, 1});
  RetrievalConfig all = kShort;
  all.nodes = 64;
  expect_tree(propose(file.store(), all, {1}), {1, 2, 5, 3, 6, 4}, {-1, 0, 0, 1, 2, 1});
}

TEST(RetrievalDrafter, KeepsToDepthAndNodes) {
  const TextStoreFile file({{1, 2, 3, 4, 5, 6}});
  EXPECT_EQ(propose(file.store(), kShort, {1}, 0).size(), 1);
  EXPECT_EQ(propose(file.store(), kShort, {1}, 2).size(), 3);
  EXPECT_EQ(propose(file.store(), kShort, {1}, 63, 1).size(), 1);
  EXPECT_EQ(propose(file.store(), kShort, {1}, 63, 3).size(), 3);
}

/// The longest suffix of the text, of the wanted lengths, that some text of the store holds.
Text longest_suffix(const std::vector<Text>& store, const Text& text,
                    const RetrievalConfig& config) {
  for (auto length = static_cast<std::ptrdiff_t>(
           std::min<size_t>(static_cast<size_t>(config.max_match), text.size()));
       length >= config.min_match; --length)
    for (const Text& each : store)
      if (std::search(each.begin(), each.end(), text.end() - length, text.end()) != each.end())
        return {text.end() - length, text.end()};
  return {};
}

/// How often each continuation of the suffix stands in the store, by looking everywhere.
std::map<Text, int64_t> continuations(const std::vector<Text>& store, const Text& suffix) {
  std::map<Text, int64_t> out;
  if (suffix.empty()) return out;
  for (const Text& text : store)
    for (auto at = text.begin();; ++at) {
      at = std::search(at, text.end(), suffix.begin(), suffix.end());
      if (at == text.end()) break;
      const auto after = at + static_cast<std::ptrdiff_t>(suffix.size());
      for (auto end = after; end != text.end(); ++end) ++out[Text(after, end + 1)];
    }
  return out;
}

Text text_to(const CandidateTree& tree, int32_t node) {
  Text path;
  for (; node > 0; node = tree.parents[static_cast<size_t>(node)])
    path.insert(path.begin(), tree.tokens[static_cast<size_t>(node)]);
  return path;
}

TEST(RetrievalDrafter, AgreesWithLookingEverywhere) {
  int64_t proposed = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const std::vector<Text> store = fixtures::random_texts(seed, 8, 50, 4);
    const TextStoreFile file(store);
    const Text text = fixtures::random_texts(seed + 1000, 1, 12, 4).front();
    const RetrievalConfig config{.store = {}, .max_match = 5, .min_match = 2, .nodes = 10};
    const CandidateTree tree = propose(file.store(), config, text);
    const auto all = continuations(store, longest_suffix(store, text, config));
    std::vector<int64_t> best;
    for (const auto& [path, count] : all) best.push_back(count);
    std::sort(best.rbegin(), best.rend());
    best.resize(std::min<size_t>(best.size(), static_cast<size_t>(config.nodes) - 1));
    std::vector<int64_t> counts;
    for (int32_t node = 1; node < tree.size(); ++node) {
      const auto found = all.find(text_to(tree, node));
      ASSERT_NE(found, all.end()) << seed;
      counts.push_back(found->second);
    }
    EXPECT_EQ(counts, best) << seed;
    proposed += tree.size() - 1;
  }
  EXPECT_GT(proposed, 100);
}

TEST(RetrievalDrafter, TheShortestRunMayNotBeLongerThanTheLongest) {
  const RetrievalConfig config{.store = {}, .max_match = 2, .min_match = 3, .nodes = 8};
  EXPECT_EQ(
      fixtures::error_text([&] { config.validate(); }),
      "retrieval: min_match is 3, expected at most max_match, 2; lower it or raise max_match");
}

}  // namespace
}  // namespace medusa
