#include "infer/drafters/acceptance_stats.h"

#include <gtest/gtest.h>

namespace medusa {
namespace {

CandidateTree proposed_tree(const std::vector<TokenId>& tokens, const std::vector<int32_t>& parents,
                            const std::vector<float>& confidences = {}) {
  return {tokens, parents, static_cast<int32_t>(tokens.size()), {}, confidences};
}

TEST(AcceptanceStats, StartFromAConfidenceAndFollowWhatHappens) {
  AcceptanceStats rates;
  EXPECT_EQ(rates.rate(1, 0.5), 0.5);
  for (int i = 0; i < 400; ++i) rates.count(1, i % 4 == 0);
  EXPECT_NEAR(rates.rate(1, 0.25), 0.25, 0.02);
  EXPECT_GT(rates.rate(1, 0.9), rates.rate(1, 0.1)) << "of one kind, but believed in more";
  EXPECT_EQ(rates.rate(2, 0.5), 0.5) << "another kind";
  for (int i = 0; i < 400; ++i) rates.count(1, true);
  EXPECT_GT(rates.rate(1, 0.5), 0.85) << "old trials fade";
}

TEST(AcceptanceStats, ATextBeginsWhereAllTextsHaveComeToAndGoesItsOwnWay) {
  const auto all = rates_of_all_texts();
  AcceptanceStats first(all, 4);
  EXPECT_EQ(first.rate(1, 0.5), 0.5);
  for (int i = 0; i < 400; ++i) first.count(1, i % 10 == 0);
  AcceptanceStats second(all, 4);
  EXPECT_NEAR(second.rate(1, 0.5), 0.1, 0.02);
  EXPECT_EQ(second.rate(2, 0.5), 0.5) << "a kind that no text has had";
  for (int i = 0; i < 12; ++i) second.count(1, true);
  EXPECT_GT(second.rate(1, 0.5), 0.7);
  EXPECT_LT(AcceptanceStats(all, 4).rate(1, 0.5), 0.2) << "a dozen of hundreds";
}

TEST(ProposalStats, AnAcceptanceProbabilityIsTheProductAlongThePath) {
  const ProposalStats record;
  const CandidateTree tree = proposed_tree({9, 1, 2, 3}, {-1, 0, 1, 0}, {1, 0.5F, 0.25F, 0.125F});
  EXPECT_EQ(record.accept_probs(tree), (std::vector<double>{1, 0.5, 0.125, 0.125}));
}

TEST(ProposalStats, WithoutConfidencesTheFirstSiblingIsTrustedMost) {
  const std::vector<double> accept_probs =
      ProposalStats().accept_probs(proposed_tree({9, 1, 2}, {-1, 0, 0}));
  EXPECT_EQ(accept_probs[1], 0.5);
  EXPECT_LT(accept_probs[2], accept_probs[1]);
}

TEST(ProposalStats, AProposalIsJudgedToItsLastDepthByTheTextThatFollows) {
  const CandidateTree tree = proposed_tree({9, 1, 2, 3}, {-1, 0, 1, 2});
  ProposalStats record;
  for (int i = 0; i < 200; ++i) {  // the first two tokens are right, the third never is
    record.remember(tree);
    for (const TokenId token : {1, 2, 7}) record.follow(token);
  }
  const std::vector<double> accept_probs = record.accept_probs(tree);
  EXPECT_GT(accept_probs[1], 0.9);
  EXPECT_GT(accept_probs[2], 0.8);
  EXPECT_LT(accept_probs[3], 0.1);
}

TEST(ProposalStats, AWrongTokenSaysNothingAboutWhatStoodBehindIt) {
  const CandidateTree tree = proposed_tree({9, 1, 2}, {-1, 0, 1});
  ProposalStats record;
  for (int i = 0; i < 200; ++i) {
    record.remember(tree);
    for (const TokenId token : {5, 2}) record.follow(token);
  }
  const std::vector<double> accept_probs = record.accept_probs(tree);
  EXPECT_LT(accept_probs[1], 0.1);
  EXPECT_NEAR(accept_probs[2] / accept_probs[1], 0.5, 1e-9) << "as believed before";
}

TEST(ProposalStats, ProposalsOfSeveralStepsAreJudgedSideBySide) {
  ProposalStats record;
  const CandidateTree long_chain = proposed_tree({9, 1, 2, 3, 4}, {-1, 0, 1, 2, 3});
  for (int i = 0; i < 100; ++i)
    for (const TokenId token : {1, 2, 3, 4}) {  // a new proposal at each token, right at the first
      record.remember(long_chain);
      record.follow(token);
    }
  // Made before 1: right to its end. Made before 2, 3 and 4: wrong at once.
  const std::vector<double> accept_probs = record.accept_probs(long_chain);
  EXPECT_NEAR(accept_probs[1], 0.25, 0.1);
  EXPECT_GT(accept_probs[4] / accept_probs[1], 0.6);
}

TEST(ProposalStats, NodesOfOneConfidenceShareWhatIsLearnt) {
  ProposalStats record;
  for (int i = 0; i < 200; ++i) {
    record.remember(proposed_tree({9, 1}, {-1, 0}, {1, 0.6F}));
    record.follow(4);
  }
  EXPECT_LT(record.accept_probs(proposed_tree({9, 7, 8}, {-1, 0, 1}, {1, 0.6F, 0.6F}))[2], 0.02);
  EXPECT_NEAR(record.accept_probs(proposed_tree({9, 7}, {-1, 0}, {1, 0.2F}))[1], 0.2, 1e-6);
}

}  // namespace
}  // namespace medusa
