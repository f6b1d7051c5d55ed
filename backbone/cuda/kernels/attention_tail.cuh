// The tail of attention, and what a row has gathered before it: the end of each row's sums.
//
// A block has 32 chains: one for each group of four lanes. A row's tail begins at a multiple of 64,
// and its positions go to the chains in turn, each in at most four: always to the same one,
// wherever they lie in the cache.
#pragma once

#include "backbone/cuda/kernels/attention_splits.cuh"
#include "backbone/cuda/kernels/device_math.cuh"

namespace medusa {
namespace {

constexpr int kTailWarps = 4;
constexpr int kTailThreads = kTailWarps * kWarp;
constexpr int kChains = kTailThreads / 4;
constexpr int kChainLength = 2 * kChunk / kChains;  // most positions of a chain

/// What the threads of a block tell each other about one row and head.
template <int kD>
struct TailShared {
  int32_t path_rows[kChunk];  // cache rows of the path, root first
  float most[kTailWarps];
  float weight[kTailWarps];
  float sums[kTailWarps][kD];
};

/// @param bit  of 64.
__device__ inline int set_bits_below(uint64_t bits, int bit) {
  bits &= (uint64_t{1} << bit) - 1;
  int count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}

/// Adds up n numbers of lanes that differ in bit `mask` of the lane: the lane without it keeps sums
/// of the lower half, the other of the upper.
template <int n>
__device__ void fold(float* x, int mask) {
  const bool upper = (static_cast<int>(threadIdx.x) & mask) != 0;
  for (int i = 0; i < n / 2; ++i) {
    const float kept = upper ? x[i + n / 2] : x[i], given = upper ? x[i] : x[i + n / 2];
    x[i] = kept + shuffle_xor(given, mask);
  }
}

/// One row and head of a block.
template <int kD>
struct TailRow {
  static constexpr int kUnits = kD / 32;  // a lane has dimensions 32u + 8t + [0, 8)

  const TreeAttentionArgs& args;
  TailShared<kD>& shared;
  int32_t row, head;
  Reach reach;
  int32_t start;
  int64_t place;  // of the slot's keys

  __device__ TailRow(const TreeAttentionArgs& args_, TailShared<kD>& shared_, int32_t row_,
                     int32_t head_, int32_t group)
      : args(args_),
        shared(shared_),
        row(row_),
        head(head_),
        reach(reach_of(args_.rows.positions[row_], args_.window)),
        start(args_.rows.starts[row_]),
        place(cache_place(args_.cache, args_.layer, args_.rows.slots[row_], group, 0)) {}

  /// The chain's j-th position.
  __device__ int32_t position(int j) const {
    return reach.tail + j * kChains + static_cast<int32_t>(threadIdx.x) / 4;
  }
  __device__ bool sees(int32_t position) const {
    return position >= reach.first && position < reach.end;
  }
  /// This lane's dimensions of all positions of its chain; where there is none, of the row's own.
  __device__ void load(const Bf16* side, uint4 (&elements)[kChainLength][kUnits]) const {
    for (int j = 0; j < kChainLength; ++j) {
      const int32_t at = sees(position(j)) ? position(j) : reach.end - 1;
      const int32_t cache_row = at < start ? at : shared.path_rows[at - start];
      const Bf16* from = side + place + int64_t{cache_row} * kD + threadIdx.x % 4 * 8;
      for (int u = 0; u < kUnits; ++u) elements[j][u] = load_word4(from + 32 * u);
    }
  }

  __device__ void find_path() {
    const int bit = static_cast<int>(threadIdx.x);
    const uint64_t path = args.rows.paths[row];
    if (bit < kChunk && (path >> bit & 1) != 0)
      shared.path_rows[set_bits_below(path, bit)] = start + bit;
    sync_block();
  }

  /// The scores of a chain, -inf where there is no position.
  __device__ void score(float (&scores)[kChainLength]) const {
    uint4 keys[kChainLength][kUnits];
    load(args.cache.keys, keys);
    const Bf16* from = args.query + (int64_t{row} * args.num_heads + head) * kD;
    Eight query[kUnits];
    for (int u = 0; u < kUnits; ++u) query[u] = load_eight(from + 32 * u + threadIdx.x % 4 * 8);
    for (int j = 0; j < kChainLength; ++j) {
      float sum = 0;
      for (int u = 0; u < kUnits; ++u) {
        const Eight key = upcast(keys[j][u]);
        for (int e = 0; e < 8; ++e) sum = fmaf(query[u].x[e], key.x[e], sum);
      }
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      scores[j] = sees(position(j)) ? sum * score_scale(kD) : -INFINITY;
    }
  }

  /// Values times weights, over this chain's positions.
  __device__ static void add_values(const float (&weights)[kChainLength],
                                    const uint4 (&values)[kChainLength][kUnits],
                                    float (&sums)[kUnits * 8]) {
    for (int i = 0; i < kUnits * 8; ++i) sums[i] = 0;
    for (int j = 0; j < kChainLength; ++j)
      for (int u = 0; u < kUnits; ++u) {
        const Eight value = upcast(values[j][u]);
        for (int e = 0; e < 8; ++e) sums[u * 8 + e] = fmaf(weights[j], value.x[e], sums[u * 8 + e]);
      }
  }

  /// The tail's weights and sums, for each warp, in shared memory.
  __device__ void gather() {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    float scores[kChainLength];
    score(scores);
    uint4 values[kChainLength][kUnits];
    load(args.cache.values, values);  // they are under way while the warps compare their scores
    float most = scores[0];
    for (int j = 1; j < kChainLength; ++j) most = fmaxf(most, scores[j]);
    for (int mask = 4; mask < kWarp; mask *= 2) most = fmaxf(most, shuffle_xor(most, mask));
    if (lane == 0) shared.most[warp] = most;
    sync_block();
    most = tail_most();

    float weight = 0;
    for (int j = 0; j < kChainLength; ++j) {
      scores[j] = exp2f(scores[j] - most);
      weight += scores[j];
    }
    for (int mask = 4; mask < kWarp; mask *= 2) weight += shuffle_xor(weight, mask);
    if (lane == 0) shared.weight[warp] = weight;

    float sums[kUnits * 8];
    add_values(scores, values, sums);
    fold<kUnits * 8>(sums, 16);
    fold<kUnits * 4>(sums, 8);
    fold<kUnits * 2>(sums, 4);
    const int upper =
        (lane & 16) / 16 * (kUnits * 4) + (lane & 8) / 8 * (kUnits * 2) + (lane & 4) / 4 * kUnits;
    for (int i = 0; i < kUnits; ++i) {
      const int at = upper + i;
      shared.sums[warp][at / 8 * 32 + lane % 4 * 8 + at % 8] = sums[i];
    }
    sync_block();
  }

  __device__ float tail_most() const {
    float most = shared.most[0];
    for (int warp = 1; warp < kTailWarps; ++warp) most = fmaxf(most, shared.most[warp]);
    return most;
  }

  /// Splits in order, then the tail; a thread for each dimension.
  __device__ void join() const {
    const int d = static_cast<int>(threadIdx.x);
    if (d >= kD) return;
    const bool chunks = reach.first < reach.tail;
    const int32_t begin = chunks ? reach.first / kSplit : 0;
    const int32_t end = chunks ? (reach.tail + kSplit - 1) / kSplit : 0;
    float most = tail_most();
    for (int32_t split = begin; split < end; ++split)
      most = fmaxf(most, partial_of(args, split, row, head)[kD]);
    float weight = 0, sum = 0;
    for (int32_t split = begin; split < end; ++split) {
      const float* partial = partial_of(args, split, row, head);
      const float scale = exp2f(partial[kD] - most);
      weight = fmaf(partial[kD + 1], scale, weight);
      sum = fmaf(partial[d], scale, sum);
    }
    const float scale = exp2f(tail_most() - most);
    float tail_weight = 0, tail_sum = 0;
    for (int warp = 0; warp < kTailWarps; ++warp) {
      tail_weight += shared.weight[warp];
      tail_sum += shared.sums[warp][d];
    }
    weight = fmaf(tail_weight, scale, weight);
    sum = fmaf(tail_sum, scale, sum);
    args.out[(int64_t{row} * args.num_heads + head) * kD + d] = to_bf16(sum / weight);
  }
};

/// A block for some neighboring queries (x) of a key/value head (y), one after the other: they
/// read much the same cache rows.
template <int kD>
__global__ void __launch_bounds__(kTailThreads)
    attend_tails(TreeAttentionArgs args, int32_t block_queries) {
  begin_kernel();
  __shared__ TailShared<kD> shared;
  const int32_t group = static_cast<int32_t>(blockIdx.y);
  const int32_t per_group = static_cast<int32_t>(args.num_heads / args.cache.num_kv_heads);
  const int32_t first = static_cast<int32_t>(blockIdx.x) * block_queries;
  for (int32_t query = first; query < first + block_queries; ++query) {
    if (query >= args.rows.count * per_group) return;
    TailRow<kD> tail(args, shared, query / per_group, group * per_group + query % per_group, group);
    tail.find_path();
    tail.gather();
    tail.join();  // what it reads is written again behind the next query's first barrier
  }
}

}  // namespace
}  // namespace medusa
