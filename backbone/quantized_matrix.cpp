#include "backbone/quantized_matrix.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>

#include "backbone/files/block_decoders.h"
#include "base/check.h"

namespace medusa {
namespace {

constexpr int64_t kPadding = 32;          // k is filled up to a multiple of this
constexpr int64_t kRowBlock = 32;         // numbers of a row that share a scale
constexpr int64_t kQuantizedRows = 1024;  // at a time
constexpr float kLargestQuant = 127;      // of a row, and of what is quantized here

int64_t padded(int64_t k) { return (k + kPadding - 1) / kPadding * kPadding; }

/// All zeros: quant zero() of scale 0.
QuantizedMatrix make_matrix(QuantFormat format, int64_t n, int64_t k) {
  const int64_t num_blocks = padded(k) / format.block;
  QuantizedMatrix matrix{.format = format, .num_inputs = k};
  matrix.quants = at::full({n, padded(k)}, format.has_mins ? 0 : format.zero(), at::kByte);
  matrix.scales = at::zeros({n, num_blocks}, at::kHalf);
  if (format.has_mins) matrix.mins = at::zeros({n, num_blocks}, at::kHalf);
  return matrix;
}

/// Exactly the same numbers in a format that holds them.
QuantizedMatrix upcast_to(const QuantizedMatrix& from, QuantFormat format) {
  if (from.format == format) return from;
  MEDUSA_ASSERT(format.bits >= from.format.bits && format.block <= from.format.block &&
                format.has_mins >= from.format.has_mins);
  QuantizedMatrix matrix = from;
  matrix.format = format;
  const int64_t repeat = from.format.block / format.block;
  matrix.scales = from.scales.repeat_interleave(repeat, 1);
  if (from.format.has_mins) {
    matrix.mins = from.mins.repeat_interleave(repeat, 1);
  } else if (format.has_mins) {
    // A power of two times a half: exact.
    matrix.mins = matrix.scales.to(at::kFloat).mul(-from.format.zero()).to(at::kHalf);
  } else {
    matrix.quants = from.quants + (format.zero() - from.format.zero());
  }
  return matrix;
}

}  // namespace

std::optional<QuantFormat> quant_format(GgmlType type) {
  switch (type) {
    case GgmlType::Q4_0:
      return QuantFormat{4, 32, false};
    case GgmlType::Q4_1:
    case GgmlType::Q4_K:
      return QuantFormat{4, 32, true};
    case GgmlType::Q5_0:
    case GgmlType::Q8_0:
    case GgmlType::IQ4_NL:
    case GgmlType::IQ4_XS:
      return QuantFormat{8, 32, false};
    case GgmlType::Q5_1:
    case GgmlType::Q5_K:
      return QuantFormat{8, 32, true};
    case GgmlType::Q2_K:
      return QuantFormat{8, 16, true};
    case GgmlType::Q3_K:
    case GgmlType::Q6_K:
      return QuantFormat{8, 16, false};
    default:
      return std::nullopt;
  }
}

QuantizedMatrix read_quantized(GgmlType type, std::span<const uint8_t> bytes, int64_t num_outputs,
                               int64_t num_inputs) {
  const GgmlTypeInfo& info = ggml_type_info(type);
  MEDUSA_ASSERT(quant_format(type) && num_inputs % info.block_size == 0, info.name, num_inputs);
  const int64_t stored_blocks = num_inputs / info.block_size;
  MEDUSA_ASSERT(static_cast<int64_t>(bytes.size()) ==
                num_outputs * stored_blocks * info.block_bytes);
  QuantizedMatrix matrix = make_matrix(*quant_format(type), num_outputs, num_inputs);
  const QuantFormat format = matrix.format;
  const int zero = format.has_mins ? 0 : format.zero();
  auto* all_quants = matrix.quants.data_ptr<uint8_t>();
  auto* all_scales = matrix.scales.data_ptr<at::Half>();
  auto* all_mins = format.has_mins ? matrix.mins.data_ptr<at::Half>() : nullptr;
  // A multiple of 32 elements, so that the blocks of all rows follow each other.
  at::parallel_for(0, num_outputs * stored_blocks, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * info.block_size;
      blocks::decode(type, bytes.data() + i * info.block_bytes,
                     [&](int number, float scale, int quant, float offset) {
                       const int64_t at = first + number;
                       all_quants[at] = static_cast<uint8_t>(quant + zero);
                       if (at % format.block != 0) return;
                       all_scales[at / format.block] = scale;
                       if (all_mins != nullptr) all_mins[at / format.block] = offset;
                     });
    }
  });
  return matrix;
}

QuantizedMatrix quantize_matrix(const at::Tensor& weight) {
  MEDUSA_ASSERT(weight.dim() == 2 && weight.is_cpu());
  const int64_t n = weight.size(0), k = weight.size(1);
  QuantizedMatrix matrix = make_matrix({8, 32, false}, n, k);
  // Some rows at a time: the steps between need several times their memory.
  for (int64_t first = 0; first < n; first += kQuantizedRows) {
    const int64_t rows = std::min(kQuantizedRows, n - first);
    const at::Tensor elements =
        at::constant_pad_nd(weight.narrow(0, first, rows).to(at::kFloat), {0, padded(k) - k})
            .view({rows, -1, kPadding});
    at::Tensor scales = matrix.scales.narrow(0, first, rows);
    scales.copy_(elements.abs().amax(-1) / kLargestQuant);  // rounds to half precision
    const at::Tensor scale = scales.to(at::kFloat).unsqueeze(-1);
    // Scales that half precision rounds to 0 belong to numbers that are 0 beside all others.
    const at::Tensor quants =
        at::where(scale > 0, (elements / scale).round(), 0).clamp(-kLargestQuant, kLargestQuant);
    matrix.quants.narrow(0, first, rows)
        .copy_((quants + matrix.format.zero()).view({rows, -1}).to(at::kByte));
  }
  return matrix;
}

at::Tensor dequantize_matrix(const QuantizedMatrix& matrix) {
  const QuantFormat format = matrix.format;
  const int64_t n = matrix.num_outputs();
  at::Tensor elements = matrix.quants.to(at::kFloat).view({n, -1, format.block});
  if (!format.has_mins) elements -= format.zero();
  elements *= matrix.scales.to(at::kFloat).unsqueeze(-1);
  if (format.has_mins) elements += matrix.mins.to(at::kFloat).unsqueeze(-1);
  return elements.view({n, -1}).narrow(1, 0, matrix.num_inputs).contiguous();
}

QuantizedMatrix stack_quantized(const std::vector<QuantizedMatrix>& matrices) {
  MEDUSA_ASSERT(!matrices.empty());
  QuantFormat format = matrices.front().format;
  for (const QuantizedMatrix& matrix : matrices) {
    MEDUSA_ASSERT(matrix.num_inputs == matrices.front().num_inputs);
    format.bits = std::max(format.bits, matrix.format.bits);
    format.block = std::min(format.block, matrix.format.block);
    format.has_mins = format.has_mins || matrix.format.has_mins;
  }
  std::vector<at::Tensor> quants, scales, mins;
  for (const QuantizedMatrix& matrix : matrices) {
    const QuantizedMatrix wide = upcast_to(matrix, format);
    quants.push_back(wide.quants);
    scales.push_back(wide.scales);
    mins.push_back(wide.mins);
  }
  QuantizedMatrix all{.format = format, .num_inputs = matrices.front().num_inputs};
  all.quants = at::cat(quants);
  all.scales = at::cat(scales);
  if (format.has_mins) all.mins = at::cat(mins);
  return all;
}

QuantizedMatrix select_outputs(const QuantizedMatrix& matrix, std::span<const int64_t> order) {
  const at::Tensor rows = at::tensor(at::ArrayRef<int64_t>(order.data(), order.size()), at::kLong);
  const at::Tensor missing = (rows < 0).unsqueeze(-1), at_row = rows.clamp_min(0);
  // A scale of 0 makes any quant 0; with mins, these must be 0 as well.
  const auto pick = [&](const at::Tensor& of) {
    return of.index_select(0, at_row).masked_fill(missing, 0);
  };
  QuantizedMatrix selected = matrix;
  selected.quants = matrix.quants.index_select(0, at_row);
  selected.scales = pick(matrix.scales);
  if (matrix.format.has_mins) selected.mins = pick(matrix.mins);
  return selected;
}

at::Tensor round_to_quantized(const at::Tensor& x) {
  const int64_t m = x.size(0), k = x.size(1);
  const at::Tensor elements = at::constant_pad_nd(x, {0, padded(k) - k}).view({m, -1, kRowBlock});
  const at::Tensor largest = elements.abs().amax(-1, true);
  const at::Tensor quants =
      at::where(largest >= kLeastRowBlock, elements * (kLargestQuant / largest), 0).round();
  return (quants * (largest / kLargestQuant)).view({m, -1}).narrow(1, 0, k);
}

}  // namespace medusa
