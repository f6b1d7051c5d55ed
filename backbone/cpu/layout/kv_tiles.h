// Keys and values in the order in which tile GEMMs read them: KvLayout::Tiles. Everything here
// is about one key/value head of one layer in one block of a sequence's rows, bfloat16 bits:
//
//   keys    [32 / 16][D / 2][16 rows][2]   two neighbors along D are one 32-bit word
//   values  [32 / 2][D][2 rows]            two neighboring rows are one 32-bit word
#pragma once

#include <cstdint>

namespace medusa {

constexpr int64_t kKvBlockRows = 32;  // of one block: the k of one tile of values

/// Where element `dim` of a block's row lies. Dimensions dim (even) and dim + 1 of a key follow
/// each other.
constexpr int64_t tile_key_index(int64_t row, int64_t dim, int64_t head_size) {
  return row / 16 * 16 * head_size + dim / 2 * 32 + row % 16 * 2 + dim % 2;
}
constexpr int64_t tile_value_index(int64_t row, int64_t dim, int64_t head_size) {
  return row / 2 * 2 * head_size + dim * 2 + row % 2;
}

/// Copies a row's key, or its value, over another row's.
/// @param source, target  of their blocks; may be the same.
/// @param from, to        rows below 32.
void copy_tile_key(const uint16_t* source, int64_t from, uint16_t* target, int64_t to,
                   int64_t head_size);
void copy_tile_value(const uint16_t* source, int64_t from, uint16_t* target, int64_t to,
                     int64_t head_size);

}  // namespace medusa
