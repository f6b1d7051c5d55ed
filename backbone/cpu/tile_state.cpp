#include "backbone/cpu/tile_state.h"

#include <immintrin.h>

#include <cstdint>

namespace medusa {
namespace {

struct alignas(64) TileConfig {  // as LDTILECFG reads it
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace

TileState::TileState() {
  static const TileConfig config;
  _tile_loadconfig(&config);
}

TileState::~TileState() { _tile_release(); }

}  // namespace medusa
