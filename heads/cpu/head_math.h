// The small work between the GEMMs of the heads on a CPU, on some columns of one row. Rows that
// GEMMs read are bfloat16 bits, what they give is float32. No LibTorch.
//
// A column's result does not depend on how many are computed together. Sizes are multiples of 16.
#pragma once

#include <cstdint>

namespace medusa {

/// to = x · factor, rounded.
void scale_row(const uint16_t* x, float factor, int64_t size, uint16_t* to);

/// to = x, rounded.
void round_row(const float* x, int64_t size, uint16_t* to);

/// to = SiLU(x + bias), rounded.
void activate_row(const float* x, const float* bias, int64_t size, uint16_t* to);

/// state += x, rounded once.
void add_to_row(const float* x, int64_t size, uint16_t* state);

/// state += SiLU(x + bias), rounded once.
void add_activated_to_row(const float* x, const float* bias, int64_t size, uint16_t* state);

}  // namespace medusa
