#include "infer/rules/greedy_rule.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace medusa {
namespace {

/// [N, 4] logits whose largest value of row i stands at best[i].
at::Tensor logits_with_best(const std::vector<int64_t>& best) {
  const at::Tensor logits = at::zeros({static_cast<int64_t>(best.size()), 4});
  for (size_t i = 0; i < best.size(); ++i) logits[static_cast<int64_t>(i)][best[i]] = 1;
  return logits;
}

Acceptance accept(const CandidateTree& tree, const std::vector<int64_t>& best) {
  return GreedyRule().accept(tree, logits_with_best(best), 0, Random(1));
}

TEST(GreedyRule, GoesDownWhileTheMostProbableTokenIsACandidate) {
  //        root ── 1: token 2 ── 3: token 1 ── 4: token 0
  //           └─── 2: token 3
  const CandidateTree tree{{0, 2, 3, 1, 0}, {-1, 0, 0, 1, 3}, 5, {}};
  const Acceptance all = accept(tree, {2, 1, 0, 0, 3});
  EXPECT_EQ(all.path, (std::vector<int32_t>{1, 3, 4}));
  EXPECT_EQ(all.next, 3);
  const Acceptance some = accept(tree, {2, 3, 0, 0, 0});
  EXPECT_EQ(some.path, (std::vector<int32_t>{1}));
  EXPECT_EQ(some.next, 3);
  const Acceptance other = accept(tree, {3, 1, 1, 0, 0});
  EXPECT_EQ(other.path, (std::vector<int32_t>{2}));
  EXPECT_EQ(other.next, 1);
  const Acceptance none = accept(tree, {1, 1, 1, 1, 1});
  EXPECT_TRUE(none.path.empty());
  EXPECT_EQ(none.next, 1);
}

TEST(GreedyRule, NodesBehindNumVerifyAreNotCandidates) {
  const CandidateTree tree{{0, 2, 1}, {-1, 0, 1}, 2, {}};
  const Acceptance out = accept(tree, {2, 1, 1});
  EXPECT_EQ(out.path, (std::vector<int32_t>{1}));
  EXPECT_EQ(out.next, 1);
}

}  // namespace
}  // namespace medusa
