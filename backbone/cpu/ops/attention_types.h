// What the attention kernels read and write. Symbols as in ARCHITECTURE.md.
#pragma once

#include <cstdint>

#include "backbone/cpu/layout/kv_tiles.h"

namespace medusa {

/// One row of the pass. It sees the committed rows of its slot and those on its path.
struct AttentionRow {
  uint16_t* const* blocks = nullptr;  // of its slot, for each 32 cache rows: where the keys of the
                                      // first layer's first head lie
  uint16_t* own_block = nullptr;      // blocks[cache_row / 32]
  int64_t cache_row = 0;              // where its key and value go
  int64_t start = 0;                  // committed rows of its slot
  int64_t length = 0;                 // rows it sees: its position + 1
  const int64_t* path = nullptr;      // [length - start] cache rows, ascending, its own last
  bool contiguous = true;             // the path lies at start, start + 1, …
  int64_t segment_begin = 0;          // first row of the pass that is of this sequence
  int64_t pass_begin = 0;             // its cache row: start, or more where a tree grows in passes

  int64_t position() const { return length - 1; }
};

/// Up to 16 queries that meet the same keys: rows of one segment times heads of one group.
struct AttentionTile {
  uint16_t* const* blocks = nullptr;  // as its rows'
  int64_t group = 0;
  int64_t first_query = 0;  // n · A/G + head, n the row in the pass
  int64_t num_queries = 0;  // 1 to 16
  int64_t end = 0;          // cache rows to score: up to the last row that any of its paths holds
  int64_t max_length = 0;   // of its rows
  bool contiguous = true;   // all of its rows are
};

/// One layer of a pass. Cache and fresh values are bfloat16 bits.
struct AttentionLayer {
  int64_t num_heads = 0, num_kv_heads = 0, head_size = 0;  // head_size: a multiple of 32
  const AttentionRow* rows = nullptr;                      // [N]
  const float* qkv_bias = nullptr;    // [pairs][32] in the GEMM's order; nullptr: none
  const float* query_norm = nullptr;  // [D] in the GEMM's order; nullptr: none, nor for keys
  const float* key_norm = nullptr;
  float norm_epsilon = 0;
  const float* cos = nullptr;  // [positions, D / 2]; nullptr: no RoPE
  const float* sin = nullptr;
  int64_t window = 0;               // last rows that a row sees, its own too; 0: all
  void* query = nullptr;            // Elements [G][query_rows][D]; row n's heads at n · A/G + head
  int64_t query_rows = 0;           // at least N · A/G + 15
  uint16_t* pass_values = nullptr;  // [G][pass_rows][D]: the pass's own values, plain
  int64_t pass_rows = 0;            // at least N
  int64_t keys = 0, values = 0;     // from a block's address to this layer's: numbers
  int64_t block_stride = 0;         // to the next block of a slab
  void* attention_out = nullptr;    // N tiled rows of A · D Elements
  int64_t attention_out_depth = 0;  // their tiles of k

  int64_t heads_per_group() const { return num_heads / num_kv_heads; }
  /// From a block's address to one key/value head of this layer.
  int64_t keys_of(int64_t group) const { return keys + group * kKvBlockRows * head_size; }
  int64_t values_of(int64_t group) const { return values + group * kKvBlockRows * head_size; }
};

/// Working memory of one thread; its contents need not be kept between calls.
struct AttentionScratch {
  int64_t stride = 0;               // at least the longest slot's rows; a multiple of 32
  float* scores = nullptr;          // [16][stride]
  void* weights = nullptr;          // Elements [32][stride]; the last 16 are read, never used
  uint16_t* path_values = nullptr;  // [stride][D], rows of one path in the cache's order
  float* sums = nullptr;            // [32][D]
};

}  // namespace medusa
