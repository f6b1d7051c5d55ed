// Products with a packed weight, each with what follows it fused in. For kernel files only
// (lanes.h).
#pragma once

#include "backbone/cpu/gemm/block_loop.h"
#include "backbone/cpu/layout/tile_layout.h"
#include "backbone/cpu/simd/lanes.h"

namespace medusa {
namespace {

/// Calls epilogue(pair, row, low, high) once for every pair in the range and every row of
/// [rows.begin, rows.end), at most Engine::kSweepRows from a multiple of 16 on: the sums of the
/// pair's first and second 16 outputs.
template <typename Engine, typename Epilogue>
void sweep_pairs(const TileWeightView& weight, const typename Engine::Number* tiled, Range rows,
                 Range pairs, const Epilogue& epilogue) {
  alignas(64) float low[kTileRows][kTileRows], high[kTileRows][kTileRows];
  const int64_t passes_per_tile = ceil_div(kTileRows, Engine::kPassRows);
  const int64_t num_passes = rows.end - rows.begin <= kTileRows
                                 ? ceil_div(rows.end - rows.begin, Engine::kPassRows)
                                 : ceil_div(rows.end - rows.begin, kTileRows) * passes_per_tile;
  for (int64_t p = pairs.begin; p < pairs.end; ++p) {
    PairOperand pair{static_cast<const uint16_t*>(weight.data) + p * weight.pair_size(), nullptr};
    pair.high = pair.low + kTileNumbers;
    int64_t pass = 0;
    for (int64_t tile = rows.begin; tile < rows.end; tile += kTileRows) {
      const int64_t in_tile = rows.end - tile < kTileRows ? rows.end - tile : kTileRows;
      const int64_t per_pass = ceil_div(in_tile, ceil_div(in_tile, Engine::kPassRows));
      for (int64_t first = 0; first < in_tile; first += per_pass, ++pass) {
        const int64_t count = in_tile - first < per_pass ? in_tile - first : per_pass;
        Engine::plan_prefetch(pass, num_passes, count, weight.pair_size(), pair);
        Engine::template multiply<false>({tiled + tiled_index(tile + first, 0, weight.depth)}, pair,
                                         weight.depth, count, {low[0], high[0]});
        for (int64_t r = 0; r < count; ++r)
          epilogue(p, tile + first + r, load_floats(low[r]), load_floats(high[r]));
      }
    }
  }
}

/// The same for any number of rows.
/// @param rows  what the engine's products read: its Numbers in tile order, or RowBlocks.
template <typename Engine, typename Epilogue>
void for_each_pair(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs,
                   const Epilogue& epilogue) {
  if constexpr (requires { Engine::kBlockPassRows; }) {
    for_each_block_pair<Engine>(weight, rows, num_rows, pairs, epilogue);
  } else {
    const auto* tiled = static_cast<const typename Engine::Number*>(rows);
    for (int64_t first = 0; first < num_rows; first += Engine::kSweepRows) {
      const int64_t left = num_rows - first;
      const int64_t count = left < Engine::kSweepRows ? left : Engine::kSweepRows;
      sweep_pairs<Engine>(weight, tiled, {first, first + count}, pairs, epilogue);
    }
  }
}

template <typename Engine>
void product(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs,
             float* y, int64_t stride) {
  for_each_pair<Engine>(weight, rows, num_rows, pairs,
                        [&](int64_t pair, int64_t row, Floats low, Floats high) {
                          // The last pair may be short.
                          const int64_t left = weight.n - pair * kPairOutputs;
                          float* to = y + row * stride + pair * kPairOutputs;
                          store_first(to, low, left);
                          store_first(to + kLanes, high, left - kLanes);
                        });
}

template <typename Engine>
void product_add(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs,
                 float* y, int64_t stride) {
  for_each_pair<Engine>(
      weight, rows, num_rows, pairs, [&](int64_t pair, int64_t row, Floats low, Floats high) {
        const int64_t left = weight.n - pair * kPairOutputs;
        float* to = y + row * stride + pair * kPairOutputs;
        store_first(to, load_first(to, left) + low, left);
        store_first(to + kLanes, load_first(to + kLanes, left - kLanes) + high, left - kLanes);
      });
}

template <typename Engine>
void product_swiglu(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs,
                    void* out, int64_t out_depth) {
  auto* to = static_cast<typename Engine::Number*>(out);
  for_each_pair<Engine>(
      weight, rows, num_rows, pairs, [&](int64_t pair, int64_t row, Floats gate, Floats up) {
        Engine::store(to + tiled_index(row, pair * kTileRows, out_depth), silu(gate) * up);
      });
}

}  // namespace
}  // namespace medusa
