// Small work on single rows of a pass. Call behind has_tile_kernels().
#pragma once

#include <cstdint>

namespace medusa {

/// float32 from bfloat16 bits.
/// @param size  a multiple of 16.
void widen_row(const uint16_t* from, int64_t size, float* to);

/// RMSNorm, rounded to bfloat16: x / sqrt(mean(x²) + epsilon) · weight.
/// @param size    a multiple of 32.
/// @param to      where the first 32 columns go;
/// @param stride  the next 32 lie this many numbers further: 32 for a plain row, kTileNumbers for a
///                row in tile order.
void normalise_row(const float* x, const float* weight, float epsilon, int64_t size, uint16_t* to,
                   int64_t stride);

/// Copies plain bfloat16 rows into tile order, zeros behind k.
/// @param rows  [num_rows, k]
/// @param to    tiled_rows_size(num_rows, k) numbers
void tile_rows(const uint16_t* rows, int64_t num_rows, int64_t k, uint16_t* to);

}  // namespace medusa
