// GEMMs with a packed weight, each with what follows it fused in. For kernel files only
// (simd.h).
#pragma once

#include "backbone/cpu/gemm/quant_gemm_loop.h"
#include "backbone/cpu/layout/tile_layout.h"
#include "backbone/cpu/simd/simd.h"

namespace medusa {
namespace {

/// Calls epilogue(pair, row, low, high) once for every pair in the range and every row of
/// [rows.begin, rows.end), at most Kernel::kMc from a multiple of 16 on: the sums of the
/// pair's first and second 16 outputs.
template <typename Kernel, typename Epilogue>
void macro_kernel(const TileWeightView& weight, const typename Kernel::Element* tiled, Range rows,
                  Range pairs, const Epilogue& epilogue) {
  alignas(64) float low[kTileRows][kTileRows], high[kTileRows][kTileRows];
  const int64_t calls_per_tile = ceil_div(kTileRows, Kernel::kMr);
  const int64_t num_calls = rows.end - rows.begin <= kTileRows
                                ? ceil_div(rows.end - rows.begin, Kernel::kMr)
                                : ceil_div(rows.end - rows.begin, kTileRows) * calls_per_tile;
  for (int64_t p = pairs.begin; p < pairs.end; ++p) {
    PairOperand pair{static_cast<const uint16_t*>(weight.data) + p * weight.pair_size(), nullptr};
    pair.high = pair.low + kTileElements;
    int64_t call = 0;
    for (int64_t tile = rows.begin; tile < rows.end; tile += kTileRows) {
      const int64_t in_tile = rows.end - tile < kTileRows ? rows.end - tile : kTileRows;
      const int64_t per_call = ceil_div(in_tile, ceil_div(in_tile, Kernel::kMr));
      for (int64_t first = 0; first < in_tile; first += per_call, ++call) {
        const int64_t count = in_tile - first < per_call ? in_tile - first : per_call;
        Kernel::plan_prefetch(call, num_calls, count, weight.pair_size(), pair);
        Kernel::template multiply<false>({tiled + tiled_index(tile + first, 0, weight.depth)}, pair,
                                         weight.depth, count, {low[0], high[0]});
        for (int64_t r = 0; r < count; ++r)
          epilogue(p, tile + first + r, load_f32(low[r]), load_f32(high[r]));
      }
    }
  }
}

/// The same for any number of rows.
/// @param rows  what the kernel's GEMM reads: its Elements in tile order, or RowBlocks.
template <typename Kernel, typename Epilogue>
void for_each_pair(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs,
                   const Epilogue& epilogue) {
  if constexpr (requires { Kernel::kQuantMr; }) {
    for_each_quant_pair<Kernel>(weight, rows, num_rows, pairs, epilogue);
  } else {
    const auto* tiled = static_cast<const typename Kernel::Element*>(rows);
    for (int64_t first = 0; first < num_rows; first += Kernel::kMc) {
      const int64_t left = num_rows - first;
      const int64_t count = left < Kernel::kMc ? left : Kernel::kMc;
      macro_kernel<Kernel>(weight, tiled, {first, first + count}, pairs, epilogue);
    }
  }
}

template <typename Kernel>
void gemm(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs, float* y,
          int64_t stride) {
  for_each_pair<Kernel>(weight, rows, num_rows, pairs,
                        [&](int64_t pair, int64_t row, F32x16 low, F32x16 high) {
                          // The last pair may be short.
                          const int64_t left = weight.n - pair * kPairOutputs;
                          float* to = y + row * stride + pair * kPairOutputs;
                          store_first(to, low, left);
                          store_first(to + kLanes, high, left - kLanes);
                        });
}

template <typename Kernel>
void gemm_add(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs,
              float* y, int64_t stride) {
  for_each_pair<Kernel>(
      weight, rows, num_rows, pairs, [&](int64_t pair, int64_t row, F32x16 low, F32x16 high) {
        const int64_t left = weight.n - pair * kPairOutputs;
        float* to = y + row * stride + pair * kPairOutputs;
        store_first(to, load_first(to, left) + low, left);
        store_first(to + kLanes, load_first(to + kLanes, left - kLanes) + high, left - kLanes);
      });
}

template <typename Kernel>
void gemm_swiglu(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs,
                 void* out, int64_t out_depth) {
  auto* to = static_cast<typename Kernel::Element*>(out);
  for_each_pair<Kernel>(
      weight, rows, num_rows, pairs, [&](int64_t pair, int64_t row, F32x16 gate, F32x16 up) {
        Kernel::store(to + tiled_index(row, pair * kTileRows, out_depth), silu(gate) * up);
      });
}

}  // namespace
}  // namespace medusa
