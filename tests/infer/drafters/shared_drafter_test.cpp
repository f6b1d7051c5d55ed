#include "infer/drafters/shared_drafter.h"

#include <gtest/gtest.h>

#include "tests/infer/expect_tree.h"

namespace medusa {
namespace {

using fixtures::expect_tree;
using Text = std::vector<TokenId>;

CandidateTree propose(SharedDrafter& drafter, const Text& text, int32_t max_depth = 63,
                      int32_t max_nodes = 64) {
  return drafter.propose({text, {}, max_depth, max_nodes}, Random(1));
}

TEST(SharedDrafter, ProposesWhatOtherAnswersWentOnWith) {
  SharedTexts texts(1 << 20);
  SharedDrafter drafter(texts, {});
  expect_tree(propose(drafter, {1, 2, 3}), {3}, {-1});
  texts.add({1, 2, 3, 4, 5, 6});
  texts.add({9, 2, 3, 4, 7});
  texts.add({8, 2, 3, 4, 7, 8});
  expect_tree(propose(drafter, {0, 2, 3, 4}), {4, 7, 5, 8, 6}, {-1, 0, 0, 1, 2});
  expect_tree(propose(drafter, {1, 2, 3, 4}), {4, 5, 6}, {-1, 0, 1});  // the longest match alone
  expect_tree(propose(drafter, {1, 2, 3, 4}, 1), {4, 5}, {-1, 0});
  EXPECT_EQ(propose(drafter, {0, 2, 3, 4}, 63, 2).size(), 2);
  SharedDrafter small(texts, {.max_match = 3, .nodes = 3});
  expect_tree(propose(small, {1, 2, 3, 4}), {4, 7, 5}, {-1, 0, 0});
}

Text text_of(TokenId number) {
  Text out;
  for (TokenId i = 0; i < 100; ++i) out.push_back(1000 * number + i);
  return out;
}

TEST(SharedDrafter, ATextWhoseTokensStoodIsKept) {
  for (const bool stood : {true, false}) {
    SharedTexts texts(SharedTexts::kFewestBytes);
    texts.add(text_of(1));
    SharedDrafter drafter(texts, {});
    TokenId number = 1;
    const auto steps = [&](int count) {
      for (int i = 0; i < count; ++i) {
        texts.add(text_of(++number));
        const CandidateTree tree = propose(drafter, {1000, 1001, 1002});
        const TokenId next = stood ? 1003 : 7;
        drafter.observe(root_only(1002), {}, {{}, next});  // as if its nodes had been left out
        if (tree.size() == 1) return i;
      }
      return count;
    };
    EXPECT_EQ(steps(50) == 50, stood);
  }
}

}  // namespace
}  // namespace medusa
