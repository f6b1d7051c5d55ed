#include "backbone/cpu/layout/kv_tiles.h"

#include <cstring>

namespace medusa {

void copy_tile_key(const uint16_t* source, int64_t from, uint16_t* target, int64_t to,
                   int64_t head_size) {
  for (int64_t dim = 0; dim < head_size; dim += 2)  // a word of two dimensions
    std::memcpy(target + tile_key_index(to, dim, head_size),
                source + tile_key_index(from, dim, head_size), 2 * sizeof(uint16_t));
}

void copy_tile_value(const uint16_t* source, int64_t from, uint16_t* target, int64_t to,
                     int64_t head_size) {
  for (int64_t dim = 0; dim < head_size; ++dim)
    target[tile_value_index(to, dim, head_size)] = source[tile_value_index(from, dim, head_size)];
}

}  // namespace medusa
