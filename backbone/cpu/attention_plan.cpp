#include "backbone/cpu/attention_plan.h"

#include <algorithm>

#include "backbone/cpu/tile_layout.h"

namespace medusa {
namespace {

/// The tile of queries [first, last] of one segment, without its group.
AttentionTile make_tile(const AttentionPlan& plan, int64_t first, int64_t last,
                        int64_t heads_per_group) {
  AttentionTile tile;
  tile.first_query = first;
  tile.num_queries = last - first + 1;
  for (int64_t n = first / heads_per_group; n <= last / heads_per_group; ++n) {
    const AttentionRow& row = plan.rows[static_cast<size_t>(n)];
    tile.slot = row.slot;
    tile.end = std::max(tile.end, row.cache_row + 1);
    tile.max_length = std::max(tile.max_length, row.length);
    tile.straight = tile.straight && row.straight;
  }
  return tile;
}

}  // namespace

void AttentionPlan::assign(const RowPlan& plan, int64_t num_kv_heads, int64_t heads_per_group,
                           int num_threads) {
  rows.clear();
  tiles.clear();
  int64_t segment_begin = 0, fresh_begin = 0;
  for (const PlannedRow& row : plan.rows) {
    if (rows.empty() || rows.back().slot != row.slot) {
      segment_begin = static_cast<int64_t>(rows.size());
      fresh_begin = row.cache_row;
    }
    rows.push_back({.slot = row.slot,
                    .cache_row = row.cache_row,
                    .start = row.start,
                    .length = row.position + 1,
                    .path = plan.path(row).data(),
                    .straight = row.straight,
                    .segment_begin = segment_begin,
                    .fresh_begin = fresh_begin});
  }
  const int64_t num_rows = plan.size();
  for (int64_t begin = 0, end = 0; begin < num_rows; begin = end) {
    for (end = begin + 1; end < num_rows && rows[static_cast<size_t>(end)].segment_begin == begin;)
      ++end;
    for (int64_t query = begin * heads_per_group; query < end * heads_per_group;
         query += kTileRows) {
      const int64_t last = std::min(query + kTileRows, end * heads_per_group) - 1;
      AttentionTile tile = make_tile(*this, query, last, heads_per_group);
      for (tile.group = 0; tile.group < num_kv_heads; ++tile.group) tiles.push_back(tile);
    }
  }
  split_last(heads_per_group, num_threads);
}

/// Three tiles on two threads: each takes one, and a half of the third.
void AttentionPlan::split_last(int64_t heads_per_group, int num_threads) {
  const int64_t num_left = std::ssize(tiles) % num_threads;
  if (num_left == 0) return;
  const std::vector<AttentionTile> left(tiles.end() - num_left, tiles.end());
  tiles.resize(tiles.size() - static_cast<size_t>(num_left));
  for (const AttentionTile& tile : left) {
    const int64_t parts = std::min(ceil_div(num_threads, num_left), tile.num_queries);
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = tile.num_queries * part / parts;
      const int64_t end = tile.num_queries * (part + 1) / parts;
      tiles.push_back(
          make_tile(*this, tile.first_query + begin, tile.first_query + end - 1, heads_per_group));
      tiles.back().group = tile.group;
    }
  }
}

}  // namespace medusa
