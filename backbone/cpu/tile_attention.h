// Grouped-query attention over a cache in KvLayout::Tiles, in path order.
//
// A row sees the committed rows of its slot and the rows on its own path through the tree. It is
// computed as if its path lay right behind the committed rows: the scores of the path are moved
// together before the softmax, and the values are taken in that order. So every sum has the same
// terms in the same order as when the path's tokens are decoded one by one, where they do lie
// there, and a tree gives the same bits as plain decoding. What is not seen has weight 0 and adds
// 0.
//
// Call behind has_tile_kernels(), on a thread that holds a TileState.
#pragma once

#include <cstdint>

namespace medusa {

/// One row of the pass.
struct AttentionRow {
  int64_t start = 0;              // committed rows of its slot
  int64_t length = 0;             // rows it sees: start, and those on its path
  const int64_t* path = nullptr;  // [length - start] cache rows, ascending, its own last
  bool straight = true;           // the path lies at start, start + 1, …
  int64_t segment_begin = 0;      // row of the pass whose cache row is start
};

/// Up to 16 queries that meet the same keys: rows of one segment times heads of one group.
struct AttentionTile {
  int64_t slot = 0, group = 0;
  int64_t first_query = 0;  // n · A/G + head, n the row in the pass
  int64_t num_queries = 0;  // 1 to 16
  int64_t end = 0;          // cache rows to score: up to the last row that any of its paths holds
  int64_t max_length = 0;   // of its rows
  bool straight = true;     // all of its rows are
};

/// One layer of a pass. Symbols as in ARCHITECTURE.md; bfloat16 bits.
struct AttentionPass {
  int64_t num_kv_heads = 0, heads_per_group = 0, head_size = 0;  // head_size: a multiple of 32
  const AttentionRow* rows = nullptr;                            // [N]
  const uint16_t* query = nullptr;  // [G][query_rows][D], query_rows >= N · A/G + 15
  int64_t query_rows = 0;
  const uint16_t* fresh_values = nullptr;  // [G][fresh_rows][D]: the values of the pass's own rows
  int64_t fresh_rows = 0;
  const uint16_t* keys = nullptr;  // the layer's part of the cache, [S, G, capacity, D]
  const uint16_t* values = nullptr;
  int64_t capacity = 0;     // a multiple of 32
  uint16_t* out = nullptr;  // N rows of A · D in tile order
  int64_t out_depth = 0;    // tiles of k of out
};

/// Working memory of one tile, of one thread; contents need not be kept between calls.
struct AttentionScratch {
  int64_t stride = 0;               // at least capacity; a multiple of 32
  float* scores = nullptr;          // [16][stride]
  uint16_t* weights = nullptr;      // [32][stride]; the last 16 rows are read, never used
  uint16_t* path_values = nullptr;  // [stride][D], rows of one path in the cache's order
  float* sums = nullptr;            // [48][D]
};

/// Computes the tile's rows of pass.out.
void attend(const AttentionPass& pass, const AttentionTile& tile, const AttentionScratch& scratch);

}  // namespace medusa
