#include "heads/path_drafts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/heads/random_heads.h"

namespace medusa {
namespace {

HeadsConfig corrected(HeadInput input, HeadOutput output) {
  HeadsConfig config = heads_config(input, output, 2);
  config.correction_rank = 32;
  return config;
}

class PathDraftsTest : public ::testing::TestWithParam<HeadsConfig> {
 protected:
  const Weights backbone_ = tiny_weights(1);
  HeadsRunner runner_{random_heads(GetParam(), backbone_), backbone_, 5};
  const at::Tensor state_ = random_hidden(1, at::kFloat)[0];
};

INSTANTIATE_TEST_SUITE_P(Kinds, PathDraftsTest,
                         testing::Values(heads_config(HeadInput::Hidden, HeadOutput::Shared, 2),
                                         heads_config(HeadInput::Root, HeadOutput::Shared, 2),
                                         heads_config(HeadInput::Sequential, HeadOutput::Shared, 2),
                                         heads_config(HeadInput::PrefixSequential,
                                                      HeadOutput::Shared, 2),
                                         corrected(HeadInput::Hidden, HeadOutput::TruncatedOwn),
                                         corrected(HeadInput::Root, HeadOutput::Shared),
                                         corrected(HeadInput::Root, HeadOutput::TruncatedShared)),
                         [](const auto& each) {
                           return fmt::format("{}_{}_{}", enum_name(each.param.input),
                                              enum_name(each.param.output),
                                              each.param.correction_rank);
                         });

TEST_P(PathDraftsTest, AreThoseOfATextThatGoesDownThePath) {
  const std::vector<std::vector<TokenId>> paths[] = {
      {{}}, {{5}, {90}, {129}}, {{5, 90}, {5, 91}, {7, 0}, {7, 5}}};
  PathDrafts drafts(runner_, state_, 9, 3);
  for (int64_t depth = 0; depth < 3; ++depth) {
    std::vector<TokenId> together;
    for (const auto& path : paths[depth]) together.insert(together.end(), path.begin(), path.end());
    const NextDrafts next = drafts.after(together, depth);
    EXPECT_EQ(next.top_k(), 5);
    for (size_t m = 0; m < paths[depth].size(); ++m) {
      std::vector<TokenId> text{9};
      text.insert(text.end(), paths[depth][m].begin(), paths[depth][m].end());
      HeadsRunner other(random_heads(GetParam(), backbone_), backbone_, 5);
      const HeadDrafts& expected = other.draft(state_, text, depth + 1);
      for (int64_t rank = 0; rank < 5; ++rank) {
        EXPECT_EQ(next.token(static_cast<int64_t>(m), rank), expected.token(0, depth, rank));
        EXPECT_NEAR(next.log_prob(static_cast<int64_t>(m), rank), expected.log_prob(0, depth, rank),
                    1e-5);
      }
    }
  }
}

TEST_P(PathDraftsTest, DependOnThePathOnlyIfTheHeadsReadIt) {
  PathDrafts drafts(runner_, state_, 9, 2);
  const NextDrafts next = drafts.after(std::vector<TokenId>{12, 26}, 1);
  EXPECT_EQ(next.log_prob(0, 0) != next.log_prob(1, 0), depends_on_paths(GetParam()));
}

TEST_P(PathDraftsTest, StayWhenTheyAreAskedAgain) {
  PathDrafts drafts(runner_, state_, 9, 3);
  const TokenId first = drafts.after({}, 0).token(0, 0);
  const TokenId second = drafts.after(std::vector<TokenId>{90}, 1).token(0, 0);
  drafts.after(std::vector<TokenId>{5, 7, 90, 5}, 2);
  EXPECT_EQ(drafts.after({}, 0).token(0, 0), first);
  EXPECT_EQ(drafts.after(std::vector<TokenId>{90}, 1).token(0, 0), second);
}

}  // namespace
}  // namespace medusa
