#include "backbone/forward_plan.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backbone/kv_cache.h"
#include "tests/backbone/tiny_model.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

/// A cache whose slots hold these many committed rows.
KvCache cache_with(const std::vector<int32_t>& lengths, int64_t capacity = 64) {
  KvCache cache(tiny_config(), static_cast<int32_t>(lengths.size()), capacity, at::kFloat, at::kCPU,
                KvLayout::Rows);
  for (const int32_t length : lengths) {
    const int32_t slot = cache.open();
    std::vector<int32_t> rows(static_cast<size_t>(length));
    std::iota(rows.begin(), rows.end(), 0);
    cache.commit(slot, rows);
  }
  return cache;
}

std::vector<int64_t> path_of(const ForwardPlan& plan, size_t row) {
  const auto path = plan.path(plan.rows[row]);
  return {path.begin(), path.end()};
}

TEST(ForwardPlan, AChainIsTheCausalCase) {
  KvCache cache = cache_with({3});
  const std::vector<TokenId> tokens{7, 8, 9};
  const Segment segment{0, tokens, {}};
  const ForwardPlan plan = plan_forward({&segment, 1}, cache);
  ASSERT_EQ(plan.size(), 3);
  for (int64_t i = 0; i < 3; ++i) {
    const BatchToken& row = plan.rows[static_cast<size_t>(i)];
    EXPECT_EQ(row.token, tokens[static_cast<size_t>(i)]);
    EXPECT_EQ(row.start, 3);
    EXPECT_EQ(row.cache_row, 3 + i);
    EXPECT_EQ(row.position, 3 + i);
    EXPECT_TRUE(row.contiguous);
  }
  EXPECT_EQ(path_of(plan, 2), (std::vector<int64_t>{3, 4, 5}));
}

TEST(ForwardPlan, ATreesRowsSeeTheirAncestorsAndStandAtTheirDepth) {
  KvCache cache = cache_with({10});
  const std::vector<TokenId> tokens{1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> parents{-1, 0, 0, 1, 2, 4};
  const Segment segment{0, tokens, parents};
  const ForwardPlan plan = plan_forward({&segment, 1}, cache);
  const std::vector<std::vector<int64_t>> paths{{10},         {10, 11},     {10, 12},
                                                {10, 11, 13}, {10, 12, 14}, {10, 12, 14, 15}};
  const std::vector<bool> contiguous{true, true, false, false, false, false};
  for (size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ(path_of(plan, i), paths[i]);
    EXPECT_EQ(plan.rows[i].position, 10 + static_cast<int64_t>(paths[i].size()) - 1);
    EXPECT_EQ(plan.rows[i].cache_row, 10 + static_cast<int64_t>(i));
    EXPECT_EQ(plan.rows[i].contiguous, contiguous[i]) << i;
  }
}

TEST(ForwardPlan, SegmentsStandOneAfterTheOtherEachAtItsSlotsStart) {
  KvCache cache = cache_with({4, 0, 20});
  const std::vector<TokenId> first{1, 2, 3}, second{4, 5};
  const std::vector<int32_t> parents{-1, 0, 0}, two_roots{-1, -1};
  const std::vector<Segment> segments{{2, first, parents}, {0, second, two_roots}};
  const ForwardPlan plan = plan_forward(segments, cache);
  ASSERT_EQ(plan.size(), 5);
  EXPECT_EQ(path_of(plan, 2), (std::vector<int64_t>{20, 22}));
  EXPECT_EQ(plan.rows[3].slot, 0);
  EXPECT_EQ(plan.rows[3].start, 4);
  EXPECT_EQ(path_of(plan, 4), (std::vector<int64_t>{5}));
  EXPECT_EQ(plan.rows[4].position, 4);
  EXPECT_FALSE(plan.rows[4].contiguous);
}

TEST(ForwardPlan, ATreeThatGrowsRunsItsNewRowsOnly) {
  KvCache cache = cache_with({10});
  const std::vector<TokenId> tokens{1, 2, 3, 4, 5};
  const std::vector<int32_t> parents{-1, 0, 0, 1, 2};
  const Segment whole{0, tokens, parents}, grown{0, tokens, parents, 3};
  const ForwardPlan all = plan_forward({&whole, 1}, cache), rest = plan_forward({&grown, 1}, cache);
  ASSERT_EQ(rest.size(), 2);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(rest.rows[i].token, all.rows[i + 3].token);
    EXPECT_EQ(rest.rows[i].cache_row, all.rows[i + 3].cache_row);
    EXPECT_EQ(rest.rows[i].position, all.rows[i + 3].position);
    EXPECT_EQ(path_of(rest, i), path_of(all, i + 3));
  }
  const Segment nothing{0, tokens, parents, 5};
  EXPECT_THROW(plan_forward({&nothing, 1}, cache), std::logic_error);
}

TEST(ForwardPlan, WhatIsNoTreeIsABug) {
  KvCache cache = cache_with({0, 0});
  const std::vector<TokenId> tokens{1, 2};
  const std::vector<int32_t> itself{-1, 1}, too_few{-1}, good{-1, 0};
  for (const auto* parents : {&itself, &too_few}) {
    const Segment segment{0, tokens, *parents};
    EXPECT_THROW(plan_forward({&segment, 1}, cache), std::logic_error);
  }
  const std::vector<Segment> twice{{1, tokens, good}, {1, tokens, good}};
  EXPECT_THROW(plan_forward(twice, cache), std::logic_error);
}

TEST(ForwardPlan, ASegmentThatDoesNotFitIsTheUsersError) {
  KvCache cache = cache_with({60}, 64);
  const std::vector<TokenId> fits(4, 1), too_long(5, 1);
  const Segment good{0, fits, {}}, bad{0, too_long, {}};
  EXPECT_EQ(plan_forward({&good, 1}, cache).size(), 4);
  EXPECT_EQ(fixtures::error_text([&] {
              plan_forward({&bad, 1}, cache);
            }),
            "the sequence needs 65 rows, expected at most 64; shorten the prompt or raise "
            "backbone.context");
}

}  // namespace
}  // namespace medusa
