#include "backbone/cpu/layout/tile_weight.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstring>
#include <numeric>

#include "backbone/cpu/layout/quant_layout.h"
#include "backbone/cpu/threads/huge_pages.h"
#include "base/check.h"

namespace medusa {
namespace {

std::vector<int64_t> identity(int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// Spreads one output of a pair over the pair's tiles: two neighbors along k are one 32-bit word,
/// the words of 16 outputs stand side by side.
void pack_output(const uint16_t* from, int64_t k, int64_t lane, uint16_t* pair) {
  uint16_t* tile = pair + lane / kTileRows * kTileElements + lane % kTileRows * 2;
  for (int64_t i = 0; i < k; ++i) {
    const int64_t in_tile = i % kTileDepth;
    tile[i / kTileDepth * 2 * kTileElements + in_tile / 2 * 2 * kTileRows + in_tile % 2] = from[i];
  }
}

/// The scales (or mins) of 16 outputs in one tile: of its first 16 or 32 elements, then of the
/// others.
void pack_scales(const at::Tensor& scales, int64_t block, int64_t first, int64_t tile,
                 uint8_t* to) {
  const int64_t in_tile = kTileDepth / block, row_size = scales.size(1);
  const auto* from = static_cast<const uint16_t*>(scales.const_data_ptr());
  for (int64_t b = 0; b < in_tile; ++b)
    for (int64_t i = 0; i < kTileRows; ++i, to += sizeof(uint16_t))
      std::memcpy(to, &from[(first + i) * row_size + tile * in_tile + b], sizeof(uint16_t));
}

/// Sixteen outputs from `first` on in one tile.
void pack_quant_tile(const QuantizedMatrix& rows, int64_t first, int64_t tile, uint8_t* to) {
  const QuantFormat format = rows.format;
  pack_scales(rows.scales, format.block, first, tile, to);
  to += quant_scale_bytes(format);
  if (format.has_mins) {
    pack_scales(rows.mins, format.block, first, tile, to);
    to += quant_scale_bytes(format);
  }
  const int64_t row_size = rows.quants.size(1);
  for (int64_t output = 0; output < kTileRows; ++output) {
    const uint8_t* from =
        rows.quants.const_data_ptr<uint8_t>() + (first + output) * row_size + tile * kTileDepth;
    uint8_t* lane = to + output * 4;
    for (int64_t i = 0; i < kTileDepth; ++i) {
      const int64_t word = i / 4, byte = i % 4;
      if (format.bits == 8)
        lane[word * 64 + byte] = from[i];
      else
        lane[word / 2 * 64 + byte] |= static_cast<uint8_t>(from[i] << (word % 2 * 4));
    }
  }
}

}  // namespace

TileWeight::TileWeight(const at::Tensor& weight) : TileWeight(weight, identity(weight.size(0))) {}

TileWeight::TileWeight(const at::Tensor& weight, std::span<const int64_t> order)
    : n_(static_cast<int64_t>(order.size())), k_(weight.size(1)) {
  MEDUSA_ASSERT(weight.dim() == 2 && weight.is_cpu() && n_ > 0 && k_ > 0, n_, k_);
  const at::Tensor rows = weight.to(at::kBFloat16).contiguous();
  TileWeightView shape{nullptr, n_, ceil_div(k_, kTileDepth)};
  packed_ = huge_page_bytes(shape.num_pairs() * shape.pair_size() *
                            static_cast<int64_t>(sizeof(uint16_t)));
  const auto* from = static_cast<const uint16_t*>(rows.const_data_ptr());
  auto* to = static_cast<uint16_t*>(packed_.data_ptr());
  at::parallel_for(0, shape.num_pairs(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t output = begin * kPairOutputs; output < std::min(end * kPairOutputs, n_);
         ++output) {
      const int64_t row = order[static_cast<size_t>(output)];
      if (row >= 0)
        pack_output(from + row * k_, k_, output % kPairOutputs,
                    to + output / kPairOutputs * shape.pair_size());
    }
  });
}

TileWeight::TileWeight(const QuantizedMatrix& weight)
    : TileWeight(weight, identity(weight.num_outputs())) {}

TileWeight::TileWeight(const QuantizedMatrix& weight, std::span<const int64_t> order)
    : n_(static_cast<int64_t>(order.size())), k_(weight.num_inputs), format_(weight.format) {
  // Filled up with zeros to whole pairs.
  std::vector<int64_t> padded(order.begin(), order.end());
  padded.resize(static_cast<size_t>(ceil_div(n_, kPairOutputs) * kPairOutputs), -1);
  const QuantizedMatrix rows = select_outputs(weight, padded);
  const int64_t depth = ceil_div(k_, kTileDepth), tile_bytes = quant_tile_bytes(format_);
  const int64_t num_halves = 2 * ceil_div(n_, kPairOutputs);
  packed_ = huge_page_bytes(num_halves * depth * tile_bytes);
  at::parallel_for(0, num_halves, 1, [&](int64_t begin, int64_t end) {
    for (int64_t half = begin; half < end; ++half)
      for (int64_t tile = 0; tile < depth; ++tile)
        pack_quant_tile(rows, half * kTileRows, tile,
                        packed_.data_ptr<uint8_t>() + (half * depth + tile) * tile_bytes);
  });
}

TileWeightView TileWeight::view() const {
  return {packed_.const_data_ptr(), n_, ceil_div(k_, kTileDepth), format_};
}

std::vector<int64_t> qkv_order(int64_t num_rotated, int64_t num_value_heads, int64_t head_size) {
  MEDUSA_ASSERT(head_size % kPairOutputs == 0, head_size);
  std::vector<int64_t> order;
  for (int64_t head = 0; head < num_rotated; ++head)
    for (int64_t block = 0; block < head_size / 2; block += kTileRows)
      for (const int64_t half : {int64_t{0}, head_size / 2})
        for (int64_t i = 0; i < kTileRows; ++i)
          order.push_back(head * head_size + half + block + i);
  for (int64_t i = 0; i < num_value_heads * head_size; ++i)
    order.push_back(num_rotated * head_size + i);
  return order;
}

std::vector<int64_t> gate_up_order(int64_t mlp_size) {
  std::vector<int64_t> order;
  for (int64_t block = 0; block < mlp_size; block += kTileRows)
    for (const int64_t first : {int64_t{0}, mlp_size})
      for (int64_t i = block; i < block + kTileRows; ++i)
        order.push_back(i < mlp_size ? first + i : -1);
  return order;
}

}  // namespace medusa
