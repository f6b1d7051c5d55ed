#include "infer/drafters/blockwise_drafter.h"

#include <gtest/gtest.h>

#include "tests/backbone/tiny_model.h"
#include "tests/base/error_text.h"
#include "tests/infer/toy_heads.h"

namespace medusa {
namespace {

class BlockwiseDrafters : public testing::Test {
 protected:
  CandidateTree propose(int32_t block, int32_t max_depth, int32_t max_nodes) {
    BlockwiseDrafter drafter(runner_, block);
    return drafter.propose({tokens_, hidden_, max_depth, max_nodes}, Random(1));
  }

  Weights weights_ = tiny_weights(1);
  HeadsRunner runner_{fixtures::arbitrary_heads(weights_), weights_, 2};  // three heads
  std::vector<TokenId> tokens_{5, 6, 7};
  at::Tensor hidden_ = at::randn({64}, at::make_generator<at::CPUGeneratorImpl>(3), at::kFloat);
};

TEST_F(BlockwiseDrafters, ProposesTheBestDraftOfEachHeadAsAChain) {
  const HeadDrafts drafts = runner_.draft(hidden_, std::vector<TokenId>{7});
  const CandidateTree tree = propose(3, 63, 64);
  EXPECT_EQ(tree.tokens, (std::vector<TokenId>{7, drafts.token(0, 0, 0), drafts.token(0, 1, 0),
                                               drafts.token(0, 2, 0)}));
  EXPECT_EQ(tree.parents, (std::vector<int32_t>{-1, 0, 1, 2}));
  EXPECT_EQ(tree.num_verify, 4);
}

TEST_F(BlockwiseDrafters, SequentialHeadsReadTheBestDraftsBeforeTheirs) {
  HeadsRunner runner(fixtures::arbitrary_heads(weights_, 3, HeadInput::Sequential), weights_, 2);
  BlockwiseDrafter drafter(runner, 3);
  const CandidateTree tree = drafter.propose({tokens_, hidden_, 63, 64}, Random(1));
  std::vector<TokenId> text{7};
  for (int64_t head = 0; head < 3; ++head)
    text.push_back(runner.draft(hidden_, text, head + 1).token(0, head, 0));
  EXPECT_EQ(tree.tokens, text);
}

TEST_F(BlockwiseDrafters, KeepsToBlockDepthAndNodes) {
  EXPECT_EQ(propose(2, 63, 64).size(), 3);
  EXPECT_EQ(propose(3, 1, 64).size(), 2);
  EXPECT_EQ(propose(3, 63, 3).size(), 3);
  EXPECT_EQ(propose(3, 0, 64).size(), 1);
  EXPECT_EQ(propose(3, 63, 1).size(), 1);
}

TEST_F(BlockwiseDrafters, ProposesOnlyTheRootWithoutAState) {
  hidden_.reset();
  EXPECT_EQ(propose(3, 63, 64).tokens, (std::vector<TokenId>{7}));
}

TEST(BlockOf, IsAllHeadsUnlessFewerAreAskedFor) {
  EXPECT_EQ(block_of({}, 4), 4);
  EXPECT_EQ(block_of({.block = 3}, 4), 3);
  EXPECT_EQ(fixtures::error_text([] { block_of({.block = 5}, 4); }),
            "blockwise: block is 5, expected at most 4, the number of heads; lower it or train "
            "more heads");
}

}  // namespace
}  // namespace medusa
