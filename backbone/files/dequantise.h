// Turns the stored numbers of a model file into float32: the plain types and the common block
// types of GGUF. A block is 32 numbers that share a scale, and perhaps a minimum; the "K" types
// have blocks of 256 (block_decoders.h).
#pragma once

#include <cstdint>
#include <span>

#include "base/formats/ggml_type.h"

namespace medusa {

/// F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL and IQ4_XS.
bool can_dequantise(GgmlType type);

/// @param blocks  whole blocks of a type that can_dequantise() knows; any alignment.
/// @param out     block_size numbers for each block.
/// Thread safety: calls with different out may run at the same time.
void dequantise(GgmlType type, std::span<const uint8_t> blocks, std::span<float> out);

}  // namespace medusa
