// What a warp of attention does: sixteen queries take in sixteen positions at a time, on the tensor
// cores. Weights are rounded to bfloat16, sums are float32.
//
// An element of a tensor core product depends on its own row and column alone, so a query's
// elements are the same bits whatever queries share its warp.
#pragma once

#include "backbone/cuda/kernels/attention_splits.cuh"
#include "backbone/cuda/kernels/device_math.cuh"

namespace medusa {
namespace {

constexpr int kWarpQueries = 16;

/// A warp's queries and what they have gathered. As the tensor core wants it, a lane has numbers of
/// two of them, query g and g + 8 with g = lane / 4: `[2]` below.
///
/// The order of a product's k is free as long as both sides agree. Scores: a lane's eight
/// neighboring dimensions stand for k of two products. Sums: a lane's four neighboring dimensions
/// stand for columns of four products.
template <int kD>
struct UnitQueries {
  static constexpr int kBlocks = kD / 32;  // of 32 dimensions
  static constexpr int kLaneFloats = kBlocks * 16 + 4;

  int32_t first[2] = {0, 0}, end[2] = {0, 0};  // positions that are taken in; none: not there
  const Bf16* all;   // queries; read again for each unit, which saves registers
  int32_t query[2];  // where this lane's dimensions of two of them are
  float most[2] = {-INFINITY, -INFINITY};
  float weight[2] = {0, 0};  // of this lane's positions
  float sums[kBlocks][4][4] =
      {};  // [.][e]: dimensions 8t + e and 8t + 4 + e of query g, then g + 8

  /// @param nobody  a query whose elements stand for those that are not there; as set() has it.
  __device__ UnitQueries(const Bf16* queries, int32_t nobody) : all(queries) {
    for (int h = 0; h < 2; ++h) query[h] = lane_of(nobody);
  }
  /// What query g + 8h is, and which positions it takes in.
  /// @param from  the number of its first element among all queries.
  __device__ void set(int h, int32_t from, int32_t first_position, int32_t end_position) {
    query[h] = lane_of(from);
    first[h] = first_position;
    end[h] = end_position;
  }

  /// Takes the kUnit positions from `begin` on in. A query that sees none of them keeps every bit.
  /// @param rows  rows.key(n, b): dimensions 32b + 8t to 32b + 8t + 7 of position 8n + g;
  ///              rows.value(p, b): dimensions 32b + 4g to 32b + 4g + 3 of position 2t + p % 2 +
  ///              p / 2 * 8; keys are read before rows.turn_to_values(), values behind it.
  template <typename Rows>
  __device__ void take(Rows rows, int32_t begin) {
    bool sees[2];
    for (int h = 0; h < 2; ++h) sees[h] = begin < end[h] && begin + kUnit > first[h];
    if (ballot(sees[0] || sees[1]) == 0) return;

    float scores[2][4];  // [n]: positions 8n + 2t and 8n + 2t + 1 of query g, then g + 8
    score(rows, begin, scores);
    float scale[2];
    for (int h = 0; h < 2; ++h) scale[h] = weigh(h, sees[h], scores);
    uint32_t weights[4];
    for (int i = 0; i < 4; ++i) {
      const float* pair = &scores[i / 2][i % 2 * 2];
      weights[i] = pack_bf16(pair[0], pair[1]);
    }
    rows.turn_to_values();
    for (int b = 0; b < kBlocks; ++b) add_values(rows, b, weights, sees, scale);
  }

  /// @param from  what another warp has kept of the same queries.
  __device__ void merge(const float* from) {
    const float* lane = from + static_cast<int>(threadIdx.x % kWarp);
    float mine[2], theirs[2];
    for (int h = 0; h < 2; ++h) {
      const float other = lane[h * kWarp], now = fmaxf(most[h], other);
      const bool any = now > -INFINITY;
      mine[h] = any ? exp2f(most[h] - now) : 1;
      theirs[h] = any ? exp2f(other - now) : 1;
      most[h] = now;
      weight[h] = fmaf(lane[(2 + h) * kWarp], theirs[h], weight[h] * mine[h]);
    }
    for (int b = 0; b < kBlocks; ++b)
      for (int e = 0; e < 4; ++e)
        for (int i = 0; i < 4; ++i)
          sums[b][e][i] = fmaf(lane[(4 + b * 16 + e * 4 + i) * kWarp], theirs[i / 2],
                               sums[b][e][i] * mine[i / 2]);
  }
  /// @param to  kLaneFloats for each lane.
  __device__ void keep(float* to) const {
    float* lane = to + static_cast<int>(threadIdx.x % kWarp);
    for (int h = 0; h < 2; ++h) {
      lane[h * kWarp] = most[h];
      lane[(2 + h) * kWarp] = weight[h];
    }
    for (int b = 0; b < kBlocks; ++b)
      for (int e = 0; e < 4; ++e)
        for (int i = 0; i < 4; ++i) lane[(4 + b * 16 + e * 4 + i) * kWarp] = sums[b][e][i];
  }

  /// The sum of weights of query g + 8h over the lanes that share it. All lanes call it.
  __device__ void add_up_weights() {
    for (int h = 0; h < 2; ++h) {
      weight[h] += shuffle_xor(weight[h], 1);
      weight[h] += shuffle_xor(weight[h], 2);
    }
  }
  /// @param to  partial_of() query g + 8h.
  __device__ void store(int h, float* to) const {
    const int t = static_cast<int>(threadIdx.x % 4);
    for (int b = 0; b < kBlocks; ++b)
      store_eight(to + 32 * b + 8 * t,
                  {{sums[b][0][2 * h], sums[b][1][2 * h], sums[b][2][2 * h], sums[b][3][2 * h],
                    sums[b][0][2 * h + 1], sums[b][1][2 * h + 1], sums[b][2][2 * h + 1],
                    sums[b][3][2 * h + 1]}});
    if (t == 0) {
      to[kD] = most[h];
      to[kD + 1] = weight[h];
    }
  }

 private:
  __device__ static int32_t lane_of(int32_t from) {
    return from + static_cast<int>(threadIdx.x % 4) * 8;
  }

  /// -inf for positions that are not seen.
  template <typename Rows>
  __device__ void score(const Rows& rows, int32_t begin, float (&scores)[2][4]) const {
    const int t = static_cast<int>(threadIdx.x % 4);
    for (int n = 0; n < 2; ++n)
      for (int i = 0; i < 4; ++i) scores[n][i] = 0;
    for (int b = 0; b < kBlocks; ++b) {
      const uint4 low = load_word4(all + query[0] + 32 * b),
                  high = load_word4(all + query[1] + 32 * b);
      for (int n = 0; n < 2; ++n) {
        const uint4 key = rows.key(n, b);
        mma_16x8x16(scores[n], {low.x, high.x, low.y, high.y}, {key.x, key.y});
        mma_16x8x16(scores[n], {low.z, high.z, low.w, high.w}, {key.z, key.w});
      }
    }
    for (int n = 0; n < 2; ++n)
      for (int i = 0; i < 4; ++i) {
        const int32_t position = begin + 8 * n + 2 * t + i % 2;
        if (position < first[i / 2] || position >= end[i / 2]) scores[n][i] = -INFINITY;
      }
  }

  /// Scores become weights. @returns  what earlier sums are to be multiplied by.
  __device__ float weigh(int h, bool sees, float (&scores)[2][4]) {
    const float unit = score_scale(kD);
    float highest = -INFINITY;
    for (int n = 0; n < 2; ++n)
      highest = fmaxf(highest, fmaxf(scores[n][2 * h], scores[n][2 * h + 1]));
    highest = fmaxf(highest, shuffle_xor(highest, 1));  // of the lanes of one query
    highest = fmaxf(highest, shuffle_xor(highest, 2));
    const float now = fmaxf(most[h], highest * unit);
    const float scale = exp2f(most[h] - now);
    float sum = 0;
    for (int n = 0; n < 2; ++n)
      for (int i = 2 * h; i < 2 * h + 2; ++i) {
        scores[n][i] = exp2f(fmaf(scores[n][i], unit, -now));
        sum += scores[n][i];
      }
    if (sees) {
      most[h] = now;
      weight[h] = fmaf(weight[h], scale, sum);
    }
    return scale;
  }

  /// Adds values times weights to the sums of 32 dimensions.
  template <typename Rows>
  __device__ void add_values(const Rows& rows, int b, const uint32_t (&weights)[4],
                             const bool (&sees)[2], const float (&scale)[2]) {
    float added[4][4];
    for (int e = 0; e < 4; ++e)
      for (int i = 0; i < 4; ++i) added[e][i] = 0;
    const uint2 v0 = rows.value(0, b), v1 = rows.value(1, b), v8 = rows.value(2, b),
                v9 = rows.value(3, b);
    mma_16x8x16(added[0], weights, {low_halves(v0.x, v1.x), low_halves(v8.x, v9.x)});
    mma_16x8x16(added[1], weights, {high_halves(v0.x, v1.x), high_halves(v8.x, v9.x)});
    mma_16x8x16(added[2], weights, {low_halves(v0.y, v1.y), low_halves(v8.y, v9.y)});
    mma_16x8x16(added[3], weights, {high_halves(v0.y, v1.y), high_halves(v8.y, v9.y)});
    for (int e = 0; e < 4; ++e)
      for (int i = 0; i < 4; ++i)
        if (sees[i / 2]) sums[b][e][i] = fmaf(sums[b][e][i], scale[i / 2], added[e][i]);
  }

  __device__ static uint32_t low_halves(uint32_t a, uint32_t b) { return (a & 0xFFFFU) | b << 16; }
  __device__ static uint32_t high_halves(uint32_t a, uint32_t b) {
    return a >> 16 | (b & 0xFFFF0000U);
  }
};

}  // namespace
}  // namespace medusa
