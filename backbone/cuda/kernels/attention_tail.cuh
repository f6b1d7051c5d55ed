// The tail of a row of attention: its last positions, which a tree may have scattered over the
// cache. They are taken in in the order of the path.
#pragma once

#include "backbone/cuda/kernels/attention_unit.cuh"

namespace medusa {
namespace {

/// The number of the n-th set bit.
__device__ inline int32_t set_bit(uint64_t bits, int32_t n) {
  for (; n > 0; --n) bits &= bits - 1;
  return lowest_bit(bits);
}

/// kUnit positions of a row in the cache, as UnitQueries reads them.
template <int kD>
struct TailRows {
  const Bf16 *keys, *values;  // this lane's dimensions of the slot's first row
  int32_t key_rows[2], value_rows[4];

  /// All lanes of a warp call it. @param group  of the cache's heads.
  __device__ TailRows(const TreeAttentionArgs& args, int32_t row, int32_t group, int32_t begin) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
    const int32_t start = args.rows.starts[row], last = args.rows.positions[row];
    // Behind the row's own position it is read again, with a weight of zero.
    const int32_t position = begin + lane % kUnit < last ? begin + lane % kUnit : last;
    const int32_t mine =
        position < start ? position : start + set_bit(args.rows.paths[row], position - start);
    const int64_t place = cache_place(args.cache, args.layer, args.rows.slots[row], group, 0);
    keys = args.cache.keys + place + 8 * t;
    values = args.cache.values + place + 4 * g;
    for (int n = 0; n < 2; ++n) key_rows[n] = shuffle(mine, 8 * n + g) * kD;
    for (int p = 0; p < 4; ++p) value_rows[p] = shuffle(mine, 2 * t + p % 2 + p / 2 * 8) * kD;
  }

  __device__ uint4 key(int n, int b) const { return load_word4(keys + key_rows[n] + 32 * b); }
  __device__ uint2 value(int p, int b) const {
    return *reinterpret_cast<const uint2*>(values + value_rows[p] + 32 * b);
  }
};

}  // namespace
}  // namespace medusa
