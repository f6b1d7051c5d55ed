// The product that starts attention, with the rotary embedding and the write to the cache fused in.
#pragma once

#include <cstdint>

#include "backbone/cpu/tile_layout.h"

namespace medusa {

/// Where a row of the pass stands.
struct QkvRow {
  int64_t slot = 0, position = 0, cache_row = 0;
};

/// What the product writes, for one layer. Symbols as in ARCHITECTURE.md; bfloat16 bits.
struct QkvTarget {
  int64_t num_heads = 0, num_kv_heads = 0, head_size = 0;  // head_size: a multiple of 32
  const QkvRow* rows = nullptr;                            // [N]
  const float* cos = nullptr;                              // [positions, D / 2]
  const float* sin = nullptr;
  uint16_t* query = nullptr;  // [G][query_rows][D]; row n's heads of group g at n · A/G + head
  int64_t query_rows = 0;
  uint16_t* fresh_values = nullptr;  // [G][fresh_rows][D]: the pass's own values once more, plain
  int64_t fresh_rows = 0;
  uint16_t* keys =
      nullptr;  // the layer's part of the cache: [S, G, capacity, D] in KvLayout::Tiles
  uint16_t* values = nullptr;
  int64_t capacity = 0;
};

/// Call as the products of tile_product.h.
/// @param weight  packed in qkv_order.
/// @param rows    num_rows normalised rows in tile order.
void product_qkv(const TileWeightView& weight, const uint16_t* rows, int64_t num_rows,
                 PairRange range, const QkvTarget& target);

}  // namespace medusa
