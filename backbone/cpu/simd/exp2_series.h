// Elements of the exponential functions of avx512.h and gcc_vectors.h, which have one accuracy and,
// with fused multiply-add, the same bits.
#pragma once

namespace medusa {
namespace {

/// ln(2)^i / i! for i = 6, 5, …, 0: Taylor's series of 2^f on [-0.5, 0.5], relative error below
/// 3e-7.
constexpr int kExp2Terms = 7;
constexpr float kExp2Series[kExp2Terms] = {
    1.5403530e-4F, 1.3333558e-3F, 9.6181291e-3F, 5.5504109e-2F, 2.4022651e-1F, 6.9314718e-1F, 1.0F};

constexpr float kLog2E = 1.44269504F;

}  // namespace
}  // namespace medusa
