#include "backbone/cpu/tile_weight.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <numeric>

#include "base/check.h"

namespace medusa {
namespace {

std::vector<int64_t> identity(int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// Spreads one output of a pair over the pair's tiles: two neighbours along k are one 32-bit word,
/// the words of 16 outputs stand side by side.
void pack_output(const uint16_t* from, int64_t k, int64_t lane, uint16_t* pair) {
  uint16_t* tile = pair + lane / kTileRows * kTileNumbers + lane % kTileRows * 2;
  for (int64_t i = 0; i < k; ++i) {
    const int64_t in_tile = i % kTileDepth;
    tile[i / kTileDepth * 2 * kTileNumbers + in_tile / 2 * 2 * kTileRows + in_tile % 2] = from[i];
  }
}

}  // namespace

TileWeight::TileWeight(const at::Tensor& weight) : TileWeight(weight, identity(weight.size(0))) {}

TileWeight::TileWeight(const at::Tensor& weight, std::span<const int64_t> order)
    : n_(static_cast<int64_t>(order.size())), k_(weight.size(1)) {
  MEDUSA_ASSERT(weight.dim() == 2 && weight.is_cpu() && n_ > 0 && k_ > 0, n_, k_);
  const at::Tensor rows = weight.to(at::kBFloat16).contiguous();
  TileWeightView shape{nullptr, n_, ceil_div(k_, kTileDepth)};
  packed_ = at::zeros({shape.num_pairs() * shape.pair_size()}, at::kBFloat16);
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

TileWeightView TileWeight::view() const {
  return {static_cast<const uint16_t*>(packed_.const_data_ptr()), n_, ceil_div(k_, kTileDepth)};
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
