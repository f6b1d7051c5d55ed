#include "backbone/cpu/ops/attention_plan.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "backbone/kv_cache.h"
#include "tests/backbone/tiny_model.h"

namespace medusa {
namespace {

constexpr int64_t kGroups = 3, kHeadsPerGroup = 3;

/// One chain of so many rows.
AttentionPlan plan_chain(int64_t num_rows, int num_threads) {
  KvCache cache(tiny_config(), 1, 64, at::kBFloat16, at::kCPU, KvLayout::Tiles);
  const std::vector<TokenId> tokens(static_cast<size_t>(num_rows), 7);
  const Segment chain{cache.open(), tokens, {}};
  AttentionPlan plan;
  plan.assign(plan_forward({&chain, 1}, cache), cache, kGroups, kHeadsPerGroup, num_threads);
  return plan;
}

/// Queries of each thread, when they take turns.
std::vector<int64_t> queries_by_thread(const AttentionPlan& plan, int num_threads) {
  std::vector<int64_t> counts(static_cast<size_t>(num_threads));
  for (size_t i = 0; i < plan.tiles.size(); ++i)
    counts[i % counts.size()] += plan.tiles[i].num_queries;
  return counts;
}

TEST(AttentionPlan, EveryQueryIsInOneTileHoweverManyThreadsTakeTurns) {
  for (const int64_t num_rows : {1, 2, 3, 5, 8, 16, 40})
    for (const int num_threads : {1, 2, 3, 8}) {
      SCOPED_TRACE(num_rows * 100 + num_threads);
      const AttentionPlan plan = plan_chain(num_rows, num_threads);
      std::map<std::pair<int64_t, int64_t>, int> seen;  // group, query
      for (const AttentionTile& tile : plan.tiles) {
        ASSERT_GE(tile.num_queries, 1);
        const int64_t last = (tile.first_query + tile.num_queries - 1) / kHeadsPerGroup;
        EXPECT_EQ(tile.end, plan.rows[static_cast<size_t>(last)].cache_row + 1);
        EXPECT_EQ(tile.max_length, plan.rows[static_cast<size_t>(last)].length);
        for (int64_t i = 0; i < tile.num_queries; ++i) ++seen[{tile.group, tile.first_query + i}];
      }
      EXPECT_EQ(std::ssize(seen), num_rows * kGroups * kHeadsPerGroup);
      for (const auto& [query, times] : seen) EXPECT_EQ(times, 1);
    }
}

TEST(AttentionPlan, ThreeGroupsOnTwoThreadsAreHalfEach) {
  for (const int64_t num_rows : {1, 2, 3, 4, 5}) {
    const auto counts = queries_by_thread(plan_chain(num_rows, 2), 2);
    EXPECT_LE(std::abs(counts[0] - counts[1]), 1) << num_rows;
  }
}

}  // namespace
}  // namespace medusa
