// A weight kept in blocks of small integers, its quants: as a GGUF file stores it, or quantized to
// 8 bits here.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backbone/quant_format.h"
#include "base/formats/ggml_type.h"

namespace medusa {

/// n outputs of k inputs; K is k rounded up to 32, and the elements behind k are 0.
///
/// Scales and mins are half precision. Those of GGUF's plain block types are the file's own, bit
/// for bit; those of the "K" types and IQ4_XS are products, rounded: a relative error of at most
/// 2^-11, an eighth of bfloat16's.
struct QuantizedMatrix {
  QuantFormat format{};
  int64_t num_inputs = 0;  // k
  at::Tensor quants{};     // [n, K] uint8
  at::Tensor scales{};     // [n, K / block] half
  at::Tensor mins{};       // the same; undefined without mins

  bool defined() const { return quants.defined(); }
  int64_t num_outputs() const { return quants.size(0); }
};

/// How numbers of this type are kept; nothing if the type has no blocks.
std::optional<QuantFormat> quant_format(GgmlType type);

/// @param type   one with a quant_format().
/// @param bytes  num_outputs rows of num_inputs numbers; num_inputs is whole blocks.
QuantizedMatrix read_quantized(GgmlType type, std::span<const uint8_t> bytes, int64_t num_outputs,
                               int64_t num_inputs);

/// The nearest with 8 bits, blocks of 32, no mins: quants -127 to 127 of the block's largest.
/// @param weight  [n, k] of any floating dtype, on the CPU.
QuantizedMatrix quantize_matrix(const at::Tensor& weight);

/// @returns  [n, k] float32.
at::Tensor dequantize_matrix(const QuantizedMatrix& matrix);

/// The outputs of all, in order, in the narrowest format that holds each of them exactly.
/// @param matrices  at least one; all with the same k.
QuantizedMatrix stack_quantized(const std::vector<QuantizedMatrix>& matrices);

/// Output i of the result is output order[i] of the matrix; -1: zeros.
QuantizedMatrix select_outputs(const QuantizedMatrix& matrix, std::span<const int64_t> order);

/// What a GEMM with a quantized weight reads of its rows: each 32 elements as quants -127 to 127 of
/// their largest. In float32, for the reference.
/// @param x  [M, k] float32.
at::Tensor round_to_quantized(const at::Tensor& x);

}  // namespace medusa
