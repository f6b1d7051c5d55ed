// A cache that is too small for everybody at once: requests wait, and whatever ends gives its room
// back.
#include <gtest/gtest.h>

#include <memory>

#include "infer/host_decoder.h"
#include "infer/rules/greedy_rule.h"
#include "tests/base/error_text.h"
#include "tests/infer/toy_drafters.h"

namespace medusa {
namespace {

using fixtures::kGreedy;
using fixtures::ToyTarget;

DrafterFactory plain() {
  return [] { return std::make_unique<NoneDrafter>(); };
}

class CacheRoomTest : public testing::Test {
 protected:
  static HostDecoder decoder_on(ToyTarget& target) {
    return {target, std::make_shared<GreedyRule>(), plain()};
  }

  /// A request that needs prompt + 10 + 4 rows.
  DecodeRequest request(const std::vector<TokenId>& prompt) {
    texts_.push_back(std::make_unique<std::vector<TokenId>>());
    return fixtures::toy_request(prompt, {10, 4, {}}, 1, *texts_.back());
  }

  void expect_plain(size_t i, const std::vector<TokenId>& prompt) const {
    EXPECT_EQ(*texts_.at(i), fixtures::plain_text(prompt, 10, kGreedy, Random(1))) << i;
  }

 private:
  std::vector<std::unique_ptr<std::vector<TokenId>>> texts_;
};

TEST_F(CacheRoomTest, WhoDoesNotFitWaitsAndNobodyOvertakes) {
  ToyTarget target(8);
  target.pool_rows = 50;
  HostDecoder decoder = decoder_on(target);
  const std::vector<TokenId> small{1, 2}, large(30, 3);  // 16 and 44 rows
  for (const auto& prompt : {small, small, large, small, small}) decoder.submit(request(prompt));
  decoder.step();
  EXPECT_EQ(decoder.num_running(), 2) << "the large one does not fit beside them";
  EXPECT_EQ(decoder.num_waiting(), 3) << "and the ones behind it wait for it";
  size_t ended = 0, most = 0;
  while (!decoder.idle()) {
    ended += decoder.step().size();
    most = std::max(most, static_cast<size_t>(decoder.num_running()));
    EXPECT_LE(target.reserved_rows(), target.pool_rows);
  }
  EXPECT_EQ(ended, 5U);
  EXPECT_EQ(most, 2U);
  for (const size_t i : {0, 1, 3, 4}) expect_plain(i, small);
  expect_plain(2, large);
  EXPECT_EQ(target.reserved_rows(), 0);
}

TEST_F(CacheRoomTest, WhatCanNeverFitIsRefusedWithTheNumbers) {
  ToyTarget target(8);
  target.pool_rows = 50;
  HostDecoder decoder = decoder_on(target);
  decoder.submit(request({1, 2}));
  ASSERT_EQ(
      fixtures::error_text([&] { decoder.submit(request(std::vector<TokenId>(37, 1))); }),
      "the request may need 51 rows of the KV cache (a prompt of 37 tokens, at most 10 new "
      "ones, trees of at most 4 nodes; a sequence has at most 1000), found 50 in all, expected "
      "at least as many; ask for fewer tokens, or raise backbone.cache_mb");
  decoder.submit(request(std::vector<TokenId>(36, 1)));
  EXPECT_EQ(decoder.drain().size(), 2U);
  expect_plain(0, {1, 2});
}

TEST_F(CacheRoomTest, ANeedEndsWhereTheContextDoes) {
  DecodeLimits limits;
  limits.max_new_tokens = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(rows_needed(10, limits, 500), 500);
  limits.max_new_tokens = 20;
  limits.max_nodes = 64;
  EXPECT_EQ(rows_needed(10, limits, 500), 94);
}

/// Requests that end in some other way than by their last token.
TEST_F(CacheRoomTest, WhateverEndsARequestGivesItsRoomToTheNext) {
  for (const char* how : {"cancel waiting", "cancel prefilling", "cancel decoding", "drafter",
                          "callback", "stop", "pass"}) {
    SCOPED_TRACE(how);
    const std::string way = how;
    ToyTarget target(8);
    target.pool_rows = 350;  // of one of the requests below
    HostDecoder decoder = decoder_on(target);
    const std::vector<TokenId> prompt(330, 2);
    DecodeRequest ends = request(prompt);
    if (way == "drafter")
      ends.make_drafter = [] {
        return std::make_unique<fixtures::ToyDrafter>(
            [](const DraftContext&, const Random&, CandidateTree&) {
              throw std::runtime_error("drafter failed");
            });
      };
    if (way == "callback")
      ends.emit = [](const EmittedToken&) -> bool { throw std::runtime_error("callback failed"); };
    if (way == "stop") ends.emit = [](const EmittedToken&) { return false; };
    const RequestId id = decoder.submit(std::move(ends));
    if (way == "cancel waiting") {
      ASSERT_TRUE(decoder.cancel(id));
    } else {
      decoder.step();
      EXPECT_EQ(target.reserved_rows(), 344);
      if (way == "cancel decoding")
        for (int i = 0; i < 4; ++i) decoder.step();
      if (way.starts_with("cancel")) {
        ASSERT_TRUE(decoder.cancel(id));
      }
      target.fail_prefill = way == "pass";
      while (!decoder.idle()) decoder.step();
      target.fail_prefill = false;
    }
    ASSERT_EQ(target.reserved_rows(), 0) << "else nobody would ever start";
    decoder.submit(request(prompt));
    EXPECT_EQ(decoder.drain().size(), 1U);
  }
}

}  // namespace
}  // namespace medusa
