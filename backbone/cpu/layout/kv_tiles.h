// Keys and values in the order in which tile products read them: KvLayout::Tiles. Everything here
// is about the block of one (layer, slot, key/value head), bfloat16 bits:
//
//   keys    [capacity / 16][D / 2][16 rows][2]   two neighbours along D are one 32-bit word
//   values  [capacity / 2][D][2 rows]            two neighbouring rows are one 32-bit word
#pragma once

#include <cstdint>

namespace medusa {

/// Where element `dim` of a cache row lies. Dimensions dim (even) and dim + 1 of a key follow each
/// other.
constexpr int64_t tile_key_index(int64_t row, int64_t dim, int64_t head_size) {
  return row / 16 * 16 * head_size + dim / 2 * 32 + row % 16 * 2 + dim % 2;
}
constexpr int64_t tile_value_index(int64_t row, int64_t dim, int64_t head_size) {
  return row / 2 * 2 * head_size + dim * 2 + row % 2;
}

/// Copies a row over another.
/// @param keys, values  base of the block.
/// @param from, to      rows below capacity.
void move_tile_row(uint16_t* keys, uint16_t* values, int64_t capacity, int64_t head_size,
                   int64_t from, int64_t to);

}  // namespace medusa
