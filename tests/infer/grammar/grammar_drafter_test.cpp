// What stays of a drafter's tree inside a grammar, and what the grammar adds.
#include "infer/grammar/grammar_drafter.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/infer/grammar/toy_grammar.h"

namespace medusa {
namespace {

/// Proposes the same tree below any root.
class FixedDrafter : public Drafter {
 public:
  explicit FixedDrafter(CandidateTree tree) : tree_(std::move(tree)) {}
  CandidateTree propose(const DraftContext& context, const Random& /*random*/) override {
    CandidateTree tree = tree_;
    tree.tokens[0] = context.tokens.back();
    return tree;
  }

 private:
  CandidateTree tree_;
};

constexpr TokenId kPrompt = 6;

/// The tree inside the toy's grammar, in which a 5 alone follows a 4, and one of the next three any
/// other token.
CandidateTree inside(CandidateTree tree, std::vector<TokenId> text, int32_t max_depth = 8,
                     int32_t max_nodes = 16) {
  const fixtures::ToyGrammar grammar;
  GrammarDrafter drafter(std::make_unique<FixedDrafter>(std::move(tree)), DrafterKind::Medusa,
                         grammar);
  text.insert(text.begin(), kPrompt);
  drafter.begin(std::span(text).first(1));
  DraftContext context;
  context.tokens = text;
  context.max_depth = max_depth;
  context.max_nodes = max_nodes;
  CandidateTree first = drafter.propose(context, Random(1));
  const CandidateTree second = drafter.propose(context, Random(1));
  EXPECT_EQ(first.tokens, second.tokens);  // nothing of a proposal stays
  return first;
}

CandidateTree tree_of(std::vector<TokenId> tokens, std::vector<int32_t> parents) {
  const auto count = static_cast<int32_t>(tokens.size());
  return {std::move(tokens), std::move(parents), count, {}};
}

TEST(GrammarDrafter, LeavesOutWhatCannotStandAndWhatIsBelow) {
  // Behind a 1: 2 stands, 5 does not, so neither does the 6 below it; below the 2 only the 3 does.
  const CandidateTree tree = inside(tree_of({0, 2, 5, 6, 1, 3}, {-1, 0, 0, 2, 1, 1}), {0, 1});
  EXPECT_EQ(tree.tokens, (std::vector<TokenId>{1, 2, 3}));
  EXPECT_EQ(tree.parents, (std::vector<int32_t>{-1, 0, 1}));
  EXPECT_EQ(tree.num_verify, 3);
}

TEST(GrammarDrafter, AddsWhatMustCome) {
  const CandidateTree tree = inside(tree_of({0, 2}, {-1, 0}), {2, 4});
  EXPECT_EQ(tree.tokens, (std::vector<TokenId>{4, 5}));
  EXPECT_EQ(tree.parents, (std::vector<int32_t>{-1, 0}));
}

TEST(GrammarDrafter, WhatMustComeIsThereOnceAndProbable) {
  CandidateTree drafted = tree_of({0, 5, 6}, {-1, 0, 1});
  drafted.accept_probs = {1, .2, .1};
  drafted.drafters = {DrafterKind::None, DrafterKind::PromptLookup, DrafterKind::PromptLookup};
  const CandidateTree tree = inside(drafted, {2, 4});
  EXPECT_EQ(tree.tokens, (std::vector<TokenId>{4, 5, 6}));
  EXPECT_EQ(tree.accept_probs, (std::vector<double>{1, .9, .1}));
  EXPECT_EQ(tree.drafters, drafted.drafters);

  CandidateTree other = tree_of({0, 2}, {-1, 0});
  other.accept_probs = {1, .2};
  other.drafters = {DrafterKind::None, DrafterKind::PromptLookup};
  const CandidateTree added = inside(other, {2, 4});
  EXPECT_EQ(added.accept_probs, (std::vector<double>{1, .9}));
  EXPECT_EQ(added.drafters, (std::vector<DrafterKind>{DrafterKind::None, DrafterKind::Medusa}));
}

TEST(GrammarDrafter, WhatMustComeHasRoomFirst) {
  const CandidateTree tree = inside(tree_of({0, 5, 6}, {-1, 0, 1}), {2, 4}, 8, 2);
  EXPECT_EQ(tree.tokens, (std::vector<TokenId>{4, 5}));
  EXPECT_EQ(inside(tree_of({0}, {-1}), {2, 4}, 8, 1).size(), 1);
  EXPECT_EQ(inside(tree_of({0}, {-1}), {2, 4}, 0, 8).size(), 1);
}

TEST(GrammarDrafter, BehindAnEndTheTreeStays) {
  const CandidateTree tree = inside(tree_of({0, 3, 0}, {-1, 0, 0}), {2, 5, 6, 1});
  EXPECT_EQ(tree.tokens, (std::vector<TokenId>{1, 3, 0}));
}

TEST(GrammarDrafter, NodesThatOnlyFeedTheDrafterStay) {
  CandidateTree drafted = tree_of({0, 6, 0}, {-1, 0, 1});
  drafted.num_verify = 2;
  EXPECT_EQ(inside(drafted, {0, 1}).tokens, (std::vector<TokenId>{1, 6, 0}));
}

}  // namespace
}  // namespace medusa
