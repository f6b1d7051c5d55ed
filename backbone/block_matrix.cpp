#include "backbone/block_matrix.h"

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
constexpr int64_t kQuantisedRows = 1024;  // at a time
constexpr float kLargestLevel = 127;      // of a row, and of what is quantised here

int64_t padded(int64_t k) { return (k + kPadding - 1) / kPadding * kPadding; }

/// All zeros: level zero() of scale 0.
BlockMatrix make_matrix(BlockFormat format, int64_t n, int64_t k) {
  const int64_t num_blocks = padded(k) / format.block;
  BlockMatrix matrix{.format = format, .num_inputs = k};
  matrix.levels = at::full({n, padded(k)}, format.has_offsets ? 0 : format.zero(), at::kByte);
  matrix.scales = at::zeros({n, num_blocks}, at::kHalf);
  if (format.has_offsets) matrix.offsets = at::zeros({n, num_blocks}, at::kHalf);
  return matrix;
}

/// Exactly the same numbers in a format that holds them.
BlockMatrix widen_to(const BlockMatrix& from, BlockFormat format) {
  if (from.format == format) return from;
  MEDUSA_ASSERT(format.bits >= from.format.bits && format.block <= from.format.block &&
                format.has_offsets >= from.format.has_offsets);
  BlockMatrix matrix = from;
  matrix.format = format;
  const int64_t repeat = from.format.block / format.block;
  matrix.scales = from.scales.repeat_interleave(repeat, 1);
  if (from.format.has_offsets) {
    matrix.offsets = from.offsets.repeat_interleave(repeat, 1);
  } else if (format.has_offsets) {
    // A power of two times a half: exact.
    matrix.offsets = matrix.scales.to(at::kFloat).mul(-from.format.zero()).to(at::kHalf);
  } else {
    matrix.levels = from.levels + (format.zero() - from.format.zero());
  }
  return matrix;
}

}  // namespace

std::optional<BlockFormat> block_format(GgmlType type) {
  switch (type) {
    case GgmlType::Q4_0:
      return BlockFormat{4, 32, false};
    case GgmlType::Q4_1:
    case GgmlType::Q4_K:
      return BlockFormat{4, 32, true};
    case GgmlType::Q5_0:
    case GgmlType::Q8_0:
    case GgmlType::IQ4_NL:
    case GgmlType::IQ4_XS:
      return BlockFormat{8, 32, false};
    case GgmlType::Q5_1:
    case GgmlType::Q5_K:
      return BlockFormat{8, 32, true};
    case GgmlType::Q2_K:
      return BlockFormat{8, 16, true};
    case GgmlType::Q3_K:
    case GgmlType::Q6_K:
      return BlockFormat{8, 16, false};
    default:
      return std::nullopt;
  }
}

BlockMatrix read_blocks(GgmlType type, std::span<const uint8_t> bytes, int64_t num_outputs,
                        int64_t num_inputs) {
  const GgmlTypeInfo& info = ggml_type_info(type);
  MEDUSA_ASSERT(block_format(type) && num_inputs % info.block_size == 0, info.name, num_inputs);
  const int64_t stored_blocks = num_inputs / info.block_size;
  MEDUSA_ASSERT(static_cast<int64_t>(bytes.size()) ==
                num_outputs * stored_blocks * info.block_bytes);
  BlockMatrix matrix = make_matrix(*block_format(type), num_outputs, num_inputs);
  const BlockFormat format = matrix.format;
  const int zero = format.has_offsets ? 0 : format.zero();
  auto* all_levels = matrix.levels.data_ptr<uint8_t>();
  auto* all_scales = matrix.scales.data_ptr<at::Half>();
  auto* all_offsets = format.has_offsets ? matrix.offsets.data_ptr<at::Half>() : nullptr;
  // A multiple of 32 numbers, so that the blocks of all rows follow each other.
  at::parallel_for(0, num_outputs * stored_blocks, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * info.block_size;
      blocks::decode(type, bytes.data() + i * info.block_bytes,
                     [&](int number, float scale, int level, float offset) {
                       const int64_t at = first + number;
                       all_levels[at] = static_cast<uint8_t>(level + zero);
                       if (at % format.block != 0) return;
                       all_scales[at / format.block] = scale;
                       if (all_offsets != nullptr) all_offsets[at / format.block] = offset;
                     });
    }
  });
  return matrix;
}

BlockMatrix quantise_blocks(const at::Tensor& weight) {
  MEDUSA_ASSERT(weight.dim() == 2 && weight.is_cpu());
  const int64_t n = weight.size(0), k = weight.size(1);
  BlockMatrix matrix = make_matrix({8, 32, false}, n, k);
  // Some rows at a time: the steps between need several times their memory.
  for (int64_t first = 0; first < n; first += kQuantisedRows) {
    const int64_t rows = std::min(kQuantisedRows, n - first);
    const at::Tensor numbers =
        at::constant_pad_nd(weight.narrow(0, first, rows).to(at::kFloat), {0, padded(k) - k})
            .view({rows, -1, kPadding});
    at::Tensor scales = matrix.scales.narrow(0, first, rows);
    scales.copy_(numbers.abs().amax(-1) / kLargestLevel);  // rounds to half precision
    const at::Tensor scale = scales.to(at::kFloat).unsqueeze(-1);
    // Scales that half precision rounds to 0 belong to numbers that are 0 beside all others.
    const at::Tensor levels =
        at::where(scale > 0, (numbers / scale).round(), 0).clamp(-kLargestLevel, kLargestLevel);
    matrix.levels.narrow(0, first, rows)
        .copy_((levels + matrix.format.zero()).view({rows, -1}).to(at::kByte));
  }
  return matrix;
}

at::Tensor dequantise_blocks(const BlockMatrix& matrix) {
  const BlockFormat format = matrix.format;
  const int64_t n = matrix.num_outputs();
  at::Tensor numbers = matrix.levels.to(at::kFloat).view({n, -1, format.block});
  if (!format.has_offsets) numbers -= format.zero();
  numbers *= matrix.scales.to(at::kFloat).unsqueeze(-1);
  if (format.has_offsets) numbers += matrix.offsets.to(at::kFloat).unsqueeze(-1);
  return numbers.view({n, -1}).narrow(1, 0, matrix.num_inputs).contiguous();
}

BlockMatrix stack_blocks(const std::vector<BlockMatrix>& matrices) {
  MEDUSA_ASSERT(!matrices.empty());
  BlockFormat format = matrices.front().format;
  for (const BlockMatrix& matrix : matrices) {
    MEDUSA_ASSERT(matrix.num_inputs == matrices.front().num_inputs);
    format.bits = std::max(format.bits, matrix.format.bits);
    format.block = std::min(format.block, matrix.format.block);
    format.has_offsets = format.has_offsets || matrix.format.has_offsets;
  }
  std::vector<at::Tensor> levels, scales, offsets;
  for (const BlockMatrix& matrix : matrices) {
    const BlockMatrix wide = widen_to(matrix, format);
    levels.push_back(wide.levels);
    scales.push_back(wide.scales);
    offsets.push_back(wide.offsets);
  }
  BlockMatrix all{.format = format, .num_inputs = matrices.front().num_inputs};
  all.levels = at::cat(levels);
  all.scales = at::cat(scales);
  if (format.has_offsets) all.offsets = at::cat(offsets);
  return all;
}

BlockMatrix select_outputs(const BlockMatrix& matrix, std::span<const int64_t> order) {
  const at::Tensor rows = at::tensor(at::ArrayRef<int64_t>(order.data(), order.size()), at::kLong);
  const at::Tensor missing = (rows < 0).unsqueeze(-1), at_row = rows.clamp_min(0);
  // A scale of 0 makes any level 0; with offsets, these must be 0 as well.
  const auto pick = [&](const at::Tensor& of) {
    return of.index_select(0, at_row).masked_fill(missing, 0);
  };
  BlockMatrix selected = matrix;
  selected.levels = matrix.levels.index_select(0, at_row);
  selected.scales = pick(matrix.scales);
  if (matrix.format.has_offsets) selected.offsets = pick(matrix.offsets);
  return selected;
}

at::Tensor round_to_blocks(const at::Tensor& x) {
  const int64_t m = x.size(0), k = x.size(1);
  const at::Tensor numbers = at::constant_pad_nd(x, {0, padded(k) - k}).view({m, -1, kRowBlock});
  const at::Tensor largest = numbers.abs().amax(-1, true);
  const at::Tensor levels = at::where(largest > 0, numbers * (kLargestLevel / largest), 0).round();
  return (levels * (largest / kLargestLevel)).view({m, -1}).narrow(1, 0, k);
}

}  // namespace medusa
