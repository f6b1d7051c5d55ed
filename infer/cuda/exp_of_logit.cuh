// exp of what a logit is below its row's largest, with the arithmetic of infer/row_math.cpp as a
// CPU with fused multiply-add does it: weights are the same bits there and here.
#pragma once

#include "backbone/cuda/launch.cuh"

namespace medusa {
namespace {

constexpr float kLowestExponent = -87.0F;  // exp of less is taken as 0

/// @param exponent  at most 0.
__device__ inline float exp_of_logit(float exponent) {
  if (exponent < kLowestExponent) return 0;
  const int whole = static_cast<int>(fmaf(exponent, 1.44269504F, -0.5F));
  const auto n = static_cast<float>(whole);
  const float f = fmaf(n, 2.12194440e-4F, fmaf(-n, 0.693359375F, exponent));
  float p = 1.0F / 720;
  p = fmaf(p, f, 1.0F / 120);
  p = fmaf(p, f, 1.0F / 24);
  p = fmaf(p, f, 1.0F / 6);
  p = fmaf(p, f, 0.5F);
  p = fmaf(p, f, 1.0F);
  p = fmaf(p, f, 1.0F);
  return p * float_of_bits(static_cast<uint32_t>(whole + 127) << 23);
}

}  // namespace
}  // namespace medusa
