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
  const DeviceCache& cache;
  int64_t place;    // of the slot's first row
  int32_t mine;     // the cache row of the position that this lane looked up
  int32_t rows[4];  // from there, this lane's dimensions: first of keys, then of values

  /// All lanes of a warp call it. @param group  of the cache's heads.
  __device__ TailRows(const TreeAttentionArgs& args, int32_t row, int32_t group, int32_t begin)
      : cache(args.cache), place(slot_place<kD>(args, row, group)) {
    const int lane = static_cast<int>(threadIdx.x % kWarp);
    const int32_t start = args.rows.starts[row], last = args.rows.positions[row];
    // Behind the row's own position it is read again, with a weight of zero.
    const int32_t position = begin + lane % kUnit < last ? begin + lane % kUnit : last;
    mine = position < start ? position : start + set_bit(args.rows.paths[row], position - start);
    for (int n = 0; n < 2; ++n) rows[n] = shuffle(mine, 8 * n + lane / 4) * kD + lane % 4 * 8;
  }

  __device__ uint4 key(int n, int b) const {
    return load_word4(cache.keys + place + rows[n] + 32 * b);
  }
  /// The two kinds of rows in turn take fewer registers. All lanes of a warp call it.
  __device__ void turn_to_values() {
    const int lane = static_cast<int>(threadIdx.x % kWarp);
    for (int p = 0; p < 4; ++p)
      rows[p] = shuffle(mine, 2 * (lane % 4) + p % 2 + p / 2 * 8) * kD + lane / 4 * 4;
  }
  __device__ uint2 value(int p, int b) const {
    return *reinterpret_cast<const uint2*>(cache.values + place + rows[p] + 32 * b);
  }
};

}  // namespace
}  // namespace medusa
