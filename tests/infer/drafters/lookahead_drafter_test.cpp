#include "infer/drafters/research/lookahead_drafter.h"

#include <gtest/gtest.h>

#include <set>

#include "infer/rules/greedy_rule.h"
#include "tests/base/error_text.h"
#include "tests/infer/toy_drafters.h"

namespace medusa {
namespace {

using Text = std::vector<TokenId>;

CandidateTree propose(LookaheadDrafter& drafter, const Text& text, int32_t max_depth = 63,
                      int32_t max_nodes = 64) {
  return drafter.propose({text, {}, max_depth, max_nodes}, Random(1));
}

/// Nodes that a node sees inside the tree, itself included.
std::set<int32_t> seen_by(const CandidateTree& tree, int32_t node) {
  std::set<int32_t> out;
  for (; node >= 0; node = tree.parents[static_cast<size_t>(node)]) out.insert(node);
  return out;
}

TEST(LookaheadDrafter, AWindowsTokenSeesTheFirstRowUpToItsColumnAndItsOwnColumn) {
  constexpr int32_t kWindow = 4, kLookaheadRows = 3;
  LookaheadDrafter drafter({.window = kWindow, .level = kLookaheadRows + 1, .guesses = 1});
  const CandidateTree tree = propose(drafter, {1, 2, 3});
  EXPECT_EQ(tree.num_verify, 1) << "no n-gram yet";
  ASSERT_EQ(tree.size(), kLookaheadRows * kWindow);
  const auto node = [](int32_t row, int32_t column) { return row * kWindow + column; };
  for (int32_t row = 0; row < kLookaheadRows; ++row)
    for (int32_t column = 0; column < kWindow; ++column) {
      std::set<int32_t> expected;
      for (int32_t i = 0; i <= column; ++i) expected.insert(node(0, i));
      for (int32_t j = 1; j <= row; ++j) expected.insert(node(j, column));
      EXPECT_EQ(seen_by(tree, node(row, column)), expected) << row << ", " << column;
    }
}

TEST(LookaheadDrafter, NgramsOfPromptAndAnswerAreDrafts) {
  LookaheadDrafter drafter({.window = 1, .level = 3, .guesses = 4});
  Text text{1, 2, 3, 9, 1, 2, 5, 1};
  drafter.begin(text);
  const CandidateTree first = propose(drafter, text);
  // 1 2 5 is the more recent one of the two; they share the 2.
  EXPECT_EQ(Text(first.tokens.begin(), first.tokens.begin() + 4), (Text{1, 2, 5, 3}));
  EXPECT_EQ(first.num_verify, 4);
  EXPECT_EQ(first.parents, (std::vector<int32_t>{-1, 0, 1, 1, 0}));
  text.insert(text.end(), {6, 7, 1});
  const CandidateTree second = propose(drafter, text);
  EXPECT_EQ(Text(second.tokens.begin(), second.tokens.begin() + 6), (Text{1, 6, 7, 2, 5, 3}));
}

/// Runs the drafter against the toy and follows, beside it, the paper's window by its definition.
TEST(LookaheadDrafter, TheWindowIsTheTrajectoriesOfThePaper) {
  constexpr int32_t kWindow = 5, kLookaheadRows = 3;
  LookaheadDrafter drafter({.window = kWindow, .level = kLookaheadRows + 1, .guesses = 10});
  Text text{1, 2, 3};
  std::vector<Text> window;  // [kLookaheadRows][kWindow]
  for (int step = 0; step < 12; ++step) {
    const CandidateTree tree = propose(drafter, text);
    ASSERT_EQ(tree.size() - tree.num_verify, kLookaheadRows * kWindow - 1);
    std::vector<Text> shown(kLookaheadRows, Text(kWindow));
    for (int32_t i = 0; i < kLookaheadRows * kWindow; ++i)
      shown[static_cast<size_t>(i / kWindow)][static_cast<size_t>(i % kWindow)] =
          i == 0 ? tree.tokens[0] : tree.tokens[static_cast<size_t>(tree.num_verify - 1 + i)];
    if (step > 0) {
      window[0][0] = text.back();
      ASSERT_EQ(shown, window) << step;
    }
    window = shown;

    fixtures::ToyTarget target;
    const int32_t slot = target.open();
    target.prefill(slot, std::span(text).first(text.size() - 1));
    const SlotTree pass{slot, &tree};
    const TargetOutput output = target.forward({&pass, 1}).at(0);
    const Acceptance accepted = GreedyRule().accept(tree, output.logits, 0, Random(1));
    drafter.observe(tree, output, accepted);

    // New tokens: what follows the text, row 0 up to the column, and the column below.
    Text fresh;
    std::vector<Text> ngrams;
    for (size_t column = 0; column < kWindow; ++column) {
      Text context(text.begin(), text.end() - 1);
      context.insert(context.end(), window[0].begin(),
                     window[0].begin() + static_cast<std::ptrdiff_t>(column) + 1);
      for (size_t row = 1; row < kLookaheadRows; ++row) context.push_back(window[row][column]);
      fresh.push_back(argmax(fixtures::toy_logits(context)));
      ngrams.push_back({window[1][column], window[2][column], fresh.back()});
    }
    for (const int32_t node : accepted.path) text.push_back(tree.tokens[static_cast<size_t>(node)]);
    text.push_back(accepted.next);

    // Each column is an n-gram now: a draft once its first token is the root.
    for (size_t column = 0; column < kWindow; ++column) {
      LookaheadDrafter later = drafter;
      Text asked = text;
      asked.push_back(window[0][column]);
      const CandidateTree guesses = propose(later, asked);
      int32_t node = 0;
      for (const TokenId token : ngrams[column])
        if (node >= 0) node = find_child(guesses, node, token);
      EXPECT_GT(node, 0) << step << ", column " << column;
    }
    window.erase(window.begin());
    window.push_back(fresh);
  }
}

TEST(LookaheadDrafter, WhatTheWindowFoundIsADraft) {
  // A window of the root 8 and one draft after it, 8 too. The target answers 6 and 7.
  LookaheadDrafter drafter({.window = 2, .level = 2, .guesses = 4});
  const CandidateTree tree = propose(drafter, {8});
  ASSERT_EQ(tree.tokens, (Text{8, 8}));
  EXPECT_EQ(tree.num_verify, 1);
  at::Tensor logits = at::zeros({2, 10});
  logits[0][6] = 1;
  logits[1][7] = 1;
  drafter.observe(tree, {logits, {}}, {{}, 6});
  const CandidateTree next = propose(drafter, {8, 6, 8});
  EXPECT_EQ(next.num_verify, 3);
  EXPECT_GT(find_child(next, 0, 6), 0);
  EXPECT_GT(find_child(next, 0, 7), 0);
  // The window has moved on: its draft is the answer to the last one.
  EXPECT_EQ(next.tokens.at(3), 7);
}

TEST(LookaheadDrafter, ADraftAcceptedWholeIsFollowedByTheTargetsOwnToken) {
  // 0 1 2 3 again and again: level 4 gives drafts of 3 tokens, so a step emits 4.
  class Counting : public fixtures::ToyTarget {
   public:
    PassOutput forward(std::span<const SlotTree> trees,
                       std::span<const PromptChunk> chunks) override {
      PassOutput output = fixtures::ToyTarget::forward(trees, chunks);
      for (size_t i = 0; i < trees.size(); ++i) {
        at::Tensor& logits = output.trees[i].logits;
        logits = at::zeros_like(logits);
        for (int32_t node = 0; node < trees[i].tree->size(); ++node)
          logits[node][(trees[i].tree->tokens[static_cast<size_t>(node)] + 1) % 4] = 1;
      }
      return output;
    }
  } target;
  DecodeRequest request{
      {0, 1, 2, 3, 0, 1, 2, 3, 0}, {40, 64, {}}, Random(1), [](const EmittedToken&) {
        return true;
      }};
  const auto make = [] {
    return std::make_unique<LookaheadDrafter>(
        LookaheadConfig{.window = 3, .level = 4, .guesses = 2});
  };
  const DecodeStats stats = decode_one(target, GreedyRule(), make, request).stats;
  EXPECT_EQ(stats.steps, 10);
  EXPECT_EQ(stats.emitted_per_step.at(4), 10);
}

TEST(LookaheadDrafter, WhereTheWindowDoesNotFitTheDraftsAreTriedAlone) {
  LookaheadDrafter drafter({.window = 5, .level = 3, .guesses = 2});
  const Text text{1, 2, 3, 1, 2, 4, 1};
  EXPECT_EQ(propose(drafter, text).size(), 4 + 9);
  const CandidateTree tight = propose(drafter, text, 63, 12);
  EXPECT_EQ(tight.size(), 4);
  EXPECT_EQ(tight.num_verify, 4);
  EXPECT_EQ(propose(drafter, text, 0).size(), 1) << "only the target's own token may be emitted";
  EXPECT_EQ(propose(drafter, text, 63, 2).size(), 2);
  // A step without a window leaves it as it is.
  drafter.observe(tight, {at::zeros({4, 10}), {}}, {{}, 2});
  EXPECT_EQ(propose(drafter, text).size(), 4 + 9);
}

TEST(LookaheadDrafter, AStepTakesNoMoreThan64Rows) {
  const auto error = [](const LookaheadConfig& config) {
    return fixtures::error_text([&] { config.validate(); });
  };
  EXPECT_EQ(error({.window = 15, .level = 5, .guesses = 15}),
            "lookahead: (level - 1) * (window + guesses) is 120 rows per step, expected at most "
            "64; lower one of the three");
  EXPECT_EQ(error({.window = 8, .level = 5, .guesses = 8}), "(no error)");
  EXPECT_EQ(error({}), "(no error)");
}

}  // namespace
}  // namespace medusa
