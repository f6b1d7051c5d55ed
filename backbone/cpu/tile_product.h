// Products of bfloat16 rows with a packed weight, on AMX tiles, each with what follows it fused in.
//
// Call behind has_tile_kernels(), on a thread that holds a TileState. Several threads may compute
// different pairs of the same product. A row's results are the same bits whatever the number of
// rows, the row's place among them, and the share of pairs.
#pragma once

#include <cstdint>

#include "backbone/cpu/tile_layout.h"

namespace medusa {

/// y[row][output] = the product.
/// @param rows    num_rows rows in tile order.
/// @param stride  floats between rows of y, at least weight.n.
void product_store(const TileWeightView& weight, const uint16_t* rows, int64_t num_rows,
                   PairRange range, float* y, int64_t stride);

/// y[row][output] += the product.
void product_add(const TileWeightView& weight, const uint16_t* rows, int64_t num_rows,
                 PairRange range, float* y, int64_t stride);

/// SwiGLU: silu(gate) · up as bfloat16 rows in tile order. Of each pair the first 16 outputs are
/// gates and the second 16 the ups that belong to them (gate_up_order).
/// @param out_depth  tiles of k of the rows written.
void product_swiglu(const TileWeightView& weight, const uint16_t* rows, int64_t num_rows,
                    PairRange range, uint16_t* out, int64_t out_depth);

}  // namespace medusa
