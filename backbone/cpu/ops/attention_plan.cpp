#include "backbone/cpu/ops/attention_plan.h"

#include <algorithm>

#include "backbone/cpu/layout/tile_layout.h"

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
    tile.blocks = row.blocks;
    tile.end = std::max(tile.end, row.cache_row + 1);
    tile.max_length = std::max(tile.max_length, row.length);
    tile.contiguous = tile.contiguous && row.contiguous;
  }
  return tile;
}

/// Three tiles on two threads: each takes one, and a half of the third. In place, from the back, so
/// that no part lands on a tile that has yet to be split.
void split_last(AttentionPlan& plan, int64_t heads_per_group, int num_threads) {
  std::vector<AttentionTile>& tiles = plan.tiles;
  const int64_t num_left = std::ssize(tiles) % num_threads;
  if (num_left == 0) return;
  const int64_t most_parts = ceil_div(num_threads, num_left);
  const auto parts_of = [most_parts](const AttentionTile& tile) {
    return std::min(most_parts, tile.num_queries);
  };
  const size_t first = tiles.size() - static_cast<size_t>(num_left);
  size_t from = tiles.size(), to = first;
  for (size_t i = first; i < from; ++i) to += static_cast<size_t>(parts_of(tiles[i]));
  tiles.resize(to);
  while (from > first) {
    const AttentionTile whole = tiles[--from];
    const int64_t parts = parts_of(whole);
    for (int64_t part = parts; part-- > 0;) {
      const int64_t begin = whole.num_queries * part / parts;
      const int64_t end = whole.num_queries * (part + 1) / parts;
      AttentionTile& tile = tiles[--to];
      tile =
          make_tile(plan, whole.first_query + begin, whole.first_query + end - 1, heads_per_group);
      tile.group = whole.group;
    }
  }
}

}  // namespace

void AttentionPlan::assign(const ForwardPlan& plan, const KvCache& cache, int64_t num_kv_heads,
                           int64_t heads_per_group, int num_threads) {
  rows.clear();
  tiles.clear();
  int64_t segment_begin = 0, pass_begin = 0;
  std::span<uint16_t* const> blocks;
  for (const BatchToken& row : plan.rows) {
    if (rows.empty() || plan.rows[rows.size() - 1].slot != row.slot) {
      segment_begin = static_cast<int64_t>(rows.size());
      pass_begin = row.cache_row;
      blocks = cache.tiles(row.slot);
    }
    rows.push_back({.blocks = blocks.data(),
                    .own_block = blocks[static_cast<size_t>(row.cache_row / kKvBlockRows)],
                    .cache_row = row.cache_row,
                    .start = row.start,
                    .length = row.position + 1,
                    .path = plan.path(row).data(),
                    .contiguous = row.contiguous,
                    .segment_begin = segment_begin,
                    .pass_begin = pass_begin});
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
  split_last(*this, heads_per_group, num_threads);
}

}  // namespace medusa
