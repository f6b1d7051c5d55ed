// The loop over a packed weight that every product shares. For kernel files only (avx512.h).
#pragma once

#if defined(__AVX512BF16__) && defined(__AMX_BF16__)

#include "backbone/cpu/avx512.h"
#include "backbone/cpu/tile_layout.h"

namespace medusa {
namespace {

constexpr int64_t kBlockSums = kTileRows * kTileRows;  // float32 sums of one tile
constexpr int64_t kRowsPerPass = 2 * kTileRows;

/// How far ahead of its use a weight is asked for. Measured: the loop is bound by memory, and the
/// hardware's own prefetcher does not keep up with two streams a core.
constexpr int64_t kPrefetchBytes = 4096;

/// Sums of one pair of output blocks for one or two tiles of rows: rows 0-15 against the first
/// block, against the second, then rows 16-31 alike.
struct alignas(64) PairSums {
  float low[kRowsPerPass][kTileRows];   // outputs 0-15 of the pair
  float high[kRowsPerPass][kTileRows];  // outputs 16-31
};

template <bool kTwoTiles>
inline void multiply_pair(const uint16_t* rows, const uint16_t* weights, int64_t depth,
                          int64_t prefetch_bytes, PairSums& sums) {
  constexpr int64_t kStride = 64;  // bytes of a tile's row
  const uint16_t* more_rows = rows + depth * kTileNumbers;
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kTwoTiles) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t d = 0; d < depth; ++d) {
    const uint16_t* block = weights + d * 2 * kTileNumbers;
    if (prefetch_bytes != 0) {
      const char* ahead = reinterpret_cast<const char*>(block) + prefetch_bytes;
#pragma GCC unroll 32
      for (int i = 0; i < 32; ++i) _mm_prefetch(ahead + i * 64, _MM_HINT_T0);
    }
    _tile_loadd(4, rows + d * kTileNumbers, kStride);
    _tile_loadd(6, block, kStride);
    _tile_loadd(7, block + kTileNumbers, kStride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kTwoTiles) {
      _tile_loadd(5, more_rows + d * kTileNumbers, kStride);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, sums.low[0], kStride);
  _tile_stored(1, sums.high[0], kStride);
  if constexpr (kTwoTiles) {
    _tile_stored(2, sums.low[kTileRows], kStride);
    _tile_stored(3, sums.high[kTileRows], kStride);
  }
}

/// Calls epilogue(pair, row, low, high) once for every pair in the range and every row: the sums of
/// the pair's first and second 16 outputs. A row's sums do not depend on the other rows: a tile
/// product adds along k in the same order for every row of a tile.
template <typename Epilogue>
inline void for_each_pair(const TileWeightView& weight, const uint16_t* rows, int64_t num_rows,
                          PairRange range, Epilogue&& epilogue) {
  PairSums sums;
  finish_stores();
  for (int64_t pair = range.begin; pair < range.end; ++pair) {
    const uint16_t* weights = weight.data + pair * weight.pair_size();
    for (int64_t first = 0; first < num_rows; first += kRowsPerPass) {
      const uint16_t* tile = rows + first * weight.depth * kTileDepth;
      const int64_t count = num_rows - first < kRowsPerPass ? num_rows - first : kRowsPerPass;
      const int64_t prefetch = first == 0 ? kPrefetchBytes : 0;  // later passes find it in L2
      if (count > kTileRows)
        multiply_pair<true>(tile, weights, weight.depth, prefetch, sums);
      else
        multiply_pair<false>(tile, weights, weight.depth, prefetch, sums);
      for (int64_t r = 0; r < count; ++r)
        epilogue(pair, first + r, _mm512_load_ps(sums.low[r]), _mm512_load_ps(sums.high[r]));
    }
  }
}

}  // namespace
}  // namespace medusa

#endif
