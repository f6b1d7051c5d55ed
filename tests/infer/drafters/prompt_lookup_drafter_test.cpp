#include "infer/drafters/prompt_lookup_drafter.h"

#include <gtest/gtest.h>

#include "tests/base/error_text.h"
#include "tests/infer/expect_tree.h"

namespace medusa {
namespace {

using fixtures::expect_tree;
using Text = std::vector<TokenId>;

CandidateTree propose(const PromptLookupConfig& config, const Text& text, int32_t max_depth = 63,
                      int32_t max_nodes = 64) {
  PromptLookupDrafter drafter(config);
  drafter.begin(std::span(text).first(text.size() / 2));
  return drafter.propose({text, {}, max_depth, max_nodes}, Random(1));
}

const PromptLookupConfig kChain{.max_ngram = 4, .min_ngram = 1, .num_draft = 3, .branches = 1};

TEST(PromptLookupDrafter, ProposesWhatFollowedTheLastTokensBefore) {
  expect_tree(propose(kChain, {1, 2, 3, 4, 5, 6, 9, 2, 3}), {3, 4, 5, 6}, {-1, 0, 1, 2});
}

TEST(PromptLookupDrafter, TheLongestMatchDecides) {
  // After 2 alone mostly 7, after 1 2 only 5.
  expect_tree(propose(kChain, {2, 7, 2, 7, 1, 2, 5, 8, 2, 7, 1, 2}, 1), {2, 5}, {-1, 0});
  PromptLookupConfig short_sighted = kChain;
  short_sighted.max_ngram = 1;
  expect_tree(propose(short_sighted, {2, 7, 2, 7, 1, 2, 5, 8, 2, 7, 1, 2}, 1), {2, 7}, {-1, 0});
}

TEST(PromptLookupDrafter, OfEqualMatchesTheMostFrequentThenTheMostRecentContinuationDecides) {
  expect_tree(propose(kChain, {2, 7, 2, 7, 2, 5, 9, 2}, 1), {2, 7}, {-1, 0});
  expect_tree(propose(kChain, {2, 7, 9, 2, 5, 9, 8, 2}, 1), {2, 5}, {-1, 0});
}

TEST(PromptLookupDrafter, NothingThatOccurredBeforeIsAnEmptyProposal) {
  expect_tree(propose(kChain, {1, 2, 3, 4}), {4}, {-1});
  PromptLookupConfig careful = kChain;
  careful.min_ngram = 3;
  expect_tree(propose(careful, {1, 2, 3, 4, 5, 2, 3}), {3}, {-1});
  careful.min_ngram = 2;
  EXPECT_EQ(propose(careful, {1, 2, 3, 4, 5, 2, 3}).size(), 4);
}

TEST(PromptLookupDrafter, ATextThatRepeatsItselfIsProposedBeyondItsEnd) {
  PromptLookupConfig config = kChain;
  config.num_draft = 6;
  expect_tree(propose(config, {8, 8, 8}), {8, 8, 8, 8, 8, 8, 8}, {-1, 0, 1, 2, 3, 4, 5});
  expect_tree(propose(config, {1, 2, 3, 1, 2, 3}), {3, 1, 2, 3, 1, 2, 3}, {-1, 0, 1, 2, 3, 4, 5});
}

TEST(PromptLookupDrafter, SeveralContinuationsAreATreeThatSharesItsBeginnings) {
  PromptLookupConfig config = kChain;
  config.branches = 3;
  config.num_draft = 2;
  // 1 2 was followed by 3 4 twice, by 3 5 once and by 6 once.
  const Text text{1, 2, 3, 4, 20, 1, 2, 3, 4, 21, 1, 2, 3, 5, 22, 1, 2, 6, 7, 23, 1, 2};
  expect_tree(propose(config, text), {2, 3, 4, 6, 7, 5}, {-1, 0, 1, 0, 3, 1});
}

TEST(PromptLookupDrafter, AShorterMatchIsTriedAfterTheLongestWithoutDuplicates) {
  PromptLookupConfig config = kChain;
  config.branches = 4;
  config.num_draft = 1;
  // 1 2 was followed by 5; 2 alone by 5 too, and by 7.
  expect_tree(propose(config, {2, 7, 8, 1, 2, 5, 8, 1, 2}), {2, 5, 7}, {-1, 0, 0});
}

TEST(PromptLookupDrafter, KeepsToDepthAndNodes) {
  const Text text{1, 2, 3, 4, 5, 6, 9, 1, 2};
  EXPECT_EQ(propose(kChain, text, 0).size(), 1);
  EXPECT_EQ(propose(kChain, text, 2).size(), 3);
  EXPECT_EQ(propose(kChain, text, 63, 1).size(), 1);
  EXPECT_EQ(propose(kChain, text, 63, 3).size(), 3);
}

TEST(PromptLookupDrafter, WhatWasEmittedIsLookedUpToo) {
  PromptLookupDrafter drafter(kChain);
  Text text{1, 2, 3};
  drafter.begin(text);
  EXPECT_EQ(drafter.propose({text, {}, 63, 64}, Random(1)).size(), 1);
  text.insert(text.end(), {4, 5, 3});
  expect_tree(drafter.propose({text, {}, 63, 64}, Random(1)), {3, 4, 5, 3}, {-1, 0, 1, 2});
}

TEST(PromptLookupDrafter, TheShortestRunMayNotBeLongerThanTheLongest) {
  const PromptLookupConfig config{.max_ngram = 2, .min_ngram = 3};
  EXPECT_EQ(fixtures::error_text([&] { config.validate(); }),
            "prompt_lookup: min_ngram is 3, expected at most max_ngram, 2; lower it or raise "
            "max_ngram");
}

}  // namespace
}  // namespace medusa
