// F8_E4M3 of safetensors: a sign, four bits of exponent, three of mantissa, no infinities.
// Checkpoints in it keep one scale for every block of 128 × 128 numbers of a matrix, or none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace medusa {

/// Numbers along each side of a block with one scale.
inline constexpr int64_t kFp8Block = 128;

/// What the numbers of a matrix [n, k] are multiplied by.
struct Fp8Scales {
  std::vector<float> scales;  // [ceil(n / 128)][ceil(k / 128)]; empty: 1
};

/// @param row    of the matrix.
/// @param bytes  [k], the row's.
/// @param out    [k]
/// Thread safety: calls with different out may run at the same time.
void decode_fp8_row(const Fp8Scales& scales, int64_t row, std::span<const uint8_t> bytes,
                    std::span<float> out);

}  // namespace medusa
