#include "infer/drafters/proposal_record.h"

#include <gtest/gtest.h>

namespace medusa {
namespace {

CandidateTree proposed_tree(const std::vector<TokenId>& tokens, const std::vector<int32_t>& parents,
                            const std::vector<float>& beliefs = {}) {
  return {tokens, parents, static_cast<int32_t>(tokens.size()), {}, beliefs};
}

TEST(HitRates, StartFromABeliefAndFollowWhatHappens) {
  HitRates rates;
  EXPECT_EQ(rates.rate(1, 0.5), 0.5);
  for (int i = 0; i < 400; ++i) rates.count(1, i % 4 == 0);
  EXPECT_NEAR(rates.rate(1, 0.25), 0.25, 0.02);
  EXPECT_GT(rates.rate(1, 0.9), rates.rate(1, 0.1)) << "of one kind, but believed in more";
  EXPECT_EQ(rates.rate(2, 0.5), 0.5) << "another kind";
  for (int i = 0; i < 400; ++i) rates.count(1, true);
  EXPECT_GT(rates.rate(1, 0.5), 0.85) << "old trials fade";
}

TEST(HitRates, ATextBeginsWhereAllTextsHaveComeToAndGoesItsOwnWay) {
  const auto all = rates_of_all_texts();
  HitRates first(all, 4);
  EXPECT_EQ(first.rate(1, 0.5), 0.5);
  for (int i = 0; i < 400; ++i) first.count(1, i % 10 == 0);
  HitRates second(all, 4);
  EXPECT_NEAR(second.rate(1, 0.5), 0.1, 0.02);
  EXPECT_EQ(second.rate(2, 0.5), 0.5) << "a kind that no text has had";
  for (int i = 0; i < 12; ++i) second.count(1, true);
  EXPECT_GT(second.rate(1, 0.5), 0.7);
  EXPECT_LT(HitRates(all, 4).rate(1, 0.5), 0.2) << "a dozen of hundreds";
}

TEST(ProposalRecord, AChanceIsTheProductAlongThePath) {
  const ProposalRecord record;
  const CandidateTree tree = proposed_tree({9, 1, 2, 3}, {-1, 0, 1, 0}, {1, 0.5F, 0.25F, 0.125F});
  EXPECT_EQ(record.chances(tree), (std::vector<double>{1, 0.5, 0.125, 0.125}));
}

TEST(ProposalRecord, WithoutBeliefsTheFirstSiblingIsBelievedInMost) {
  const std::vector<double> chances =
      ProposalRecord().chances(proposed_tree({9, 1, 2}, {-1, 0, 0}));
  EXPECT_EQ(chances[1], 0.5);
  EXPECT_LT(chances[2], chances[1]);
}

TEST(ProposalRecord, AProposalIsJudgedToItsLastDepthByTheTextThatFollows) {
  const CandidateTree tree = proposed_tree({9, 1, 2, 3}, {-1, 0, 1, 2});
  ProposalRecord record;
  for (int i = 0; i < 200; ++i) {  // the first two tokens are right, the third never is
    record.remember(tree);
    for (const TokenId token : {1, 2, 7}) record.follow(token);
  }
  const std::vector<double> chances = record.chances(tree);
  EXPECT_GT(chances[1], 0.9);
  EXPECT_GT(chances[2], 0.8);
  EXPECT_LT(chances[3], 0.1);
}

TEST(ProposalRecord, AWrongTokenSaysNothingAboutWhatStoodBehindIt) {
  const CandidateTree tree = proposed_tree({9, 1, 2}, {-1, 0, 1});
  ProposalRecord record;
  for (int i = 0; i < 200; ++i) {
    record.remember(tree);
    for (const TokenId token : {5, 2}) record.follow(token);
  }
  const std::vector<double> chances = record.chances(tree);
  EXPECT_LT(chances[1], 0.1);
  EXPECT_NEAR(chances[2] / chances[1], 0.5, 1e-9) << "as believed before";
}

TEST(ProposalRecord, ProposalsOfSeveralStepsAreJudgedSideBySide) {
  ProposalRecord record;
  const CandidateTree long_chain = proposed_tree({9, 1, 2, 3, 4}, {-1, 0, 1, 2, 3});
  for (int i = 0; i < 100; ++i)
    for (const TokenId token : {1, 2, 3, 4}) {  // a new proposal at each token, right at the first
      record.remember(long_chain);
      record.follow(token);
    }
  // Made before 1: right to its end. Made before 2, 3 and 4: wrong at once.
  const std::vector<double> chances = record.chances(long_chain);
  EXPECT_NEAR(chances[1], 0.25, 0.1);
  EXPECT_GT(chances[4] / chances[1], 0.6);
}

TEST(ProposalRecord, NodesOfOneBeliefShareWhatIsLearnt) {
  ProposalRecord record;
  for (int i = 0; i < 200; ++i) {
    record.remember(proposed_tree({9, 1}, {-1, 0}, {1, 0.6F}));
    record.follow(4);
  }
  EXPECT_LT(record.chances(proposed_tree({9, 7, 8}, {-1, 0, 1}, {1, 0.6F, 0.6F}))[2], 0.02);
  EXPECT_NEAR(record.chances(proposed_tree({9, 7}, {-1, 0}, {1, 0.2F}))[1], 0.2, 1e-6);
}

}  // namespace
}  // namespace medusa
