// Turns the stored numbers of a model file into float32: the plain types and the common block types
// of GGUF, and F8_E4M3 of safetensors. A block of GGUF is 32 elements that share a scale, and
// perhaps a minimum; the "K" types have blocks of 256 (block_decoders.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/formats/ggml_type.h"

namespace medusa {

/// F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL and IQ4_XS.
bool can_dequantize(GgmlType type);

/// @param blocks  whole blocks of a type that can_dequantize() knows; any alignment.
/// @param out     block_size numbers for each block.
/// Thread safety: calls with different out may run at the same time.
void dequantize(GgmlType type, std::span<const uint8_t> blocks, std::span<float> out);

/// F8_E4M3 has a sign, four bits of exponent and three of mantissa, and no infinities. Checkpoints
/// in it keep one scale for every block of 128 × 128 numbers of a matrix, or none.
///
/// Elements along each side of a block with one scale.
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
