#include "backbone/cpu/layout/kv_tiles.h"

#include <cstring>

#include "base/check.h"

namespace medusa {

void move_tile_row(uint16_t* keys, uint16_t* values, int64_t capacity, int64_t head_size,
                   int64_t from, int64_t to) {
  MEDUSA_ASSERT(from >= 0 && to >= 0 && from < capacity && to < capacity, from, to, capacity);
  for (int64_t dim = 0; dim < head_size; dim += 2)  // a word of two dimensions
    std::memcpy(keys + tile_key_index(to, dim, head_size),
                keys + tile_key_index(from, dim, head_size), 2 * sizeof(uint16_t));
  for (int64_t dim = 0; dim < head_size; ++dim)
    values[tile_value_index(to, dim, head_size)] = values[tile_value_index(from, dim, head_size)];
}

}  // namespace medusa
