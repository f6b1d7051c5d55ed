// The chunks of attention: positions that all rows of a tile read from the same cache rows, on the
// tensor cores. A chunk's weights are rounded to bfloat16, sums are float32.
//
// An element of a tensor core product depends on its own row and column alone, so a row's elements
// are the same bits whatever rows share its tile.
#pragma once

#include "backbone/cuda/kernels/attention_splits.cuh"
#include "backbone/cuda/kernels/device_math.cuh"

namespace medusa {
namespace {

constexpr int kChunkWarps = 4;
constexpr int kChunkThreads = kChunkWarps * kWarp;
constexpr int kWarpQueries = 16;                          // rows of a tensor core product
constexpr int kTileQueries = kChunkWarps * kWarpQueries;  // rows of a tile times heads of a group

/// The keys and values of a chunk in shared memory. Rows are as long as lets the lanes that read
/// together read from different banks.
template <int kD>
struct StagedChunk {
  static constexpr int kUnits = kD / 8;  // of 16 bytes
  static constexpr int kKeyStride = kUnits % 8 == 4 ? kUnits : kUnits + 4;
  static constexpr int kValueStride = kUnits + 1;

  alignas(16) uint4 keys[kChunk * kKeyStride];
  alignas(16) uint2 values[kChunk * kValueStride * 2];

  /// All threads of the block begin to copy. @param row  the chunk's first, of a head of the cache.
  __device__ void fetch(const Bf16* key_row, const Bf16* value_row) {
    for (int i = static_cast<int>(threadIdx.x); i < kChunk * kUnits; i += kChunkThreads) {
      const int row = i / kUnits, unit = i % kUnits;
      copy_async16(&keys[row * kKeyStride + unit], key_row + i * 8);
      copy_async16(&values[(row * kValueStride + unit) * 2], value_row + i * 8);
    }
  }
};

/// A warp's 16 queries and what they have gathered of a split. As the tensor core wants it, a lane
/// has numbers of two of them, query g and g + 8 with g = lane / 4: `[2]` below.
///
/// The order of a product's k is free as long as both sides agree. Scores: a lane's eight
/// neighboring dimensions stand for k of two products. Sums: a lane's four neighboring dimensions
/// stand for columns of four products.
template <int kD>
struct ChunkQueries {
  static constexpr int kBlocks = kD / 32;  // of 32 dimensions

  Reach reach[2];  // nothing, for a query that is not there
  uint4 query[kBlocks][2];
  float most[2] = {-INFINITY, -INFINITY};
  float weight[2] = {0, 0};  // of this lane's positions
  float sums[kBlocks][4][4] =
      {};  // [.][e]: dimensions 8t + e and 8t + 4 + e of query g, then g + 8

  /// Scores of the chunk that begins at `begin`, -inf for positions that a window hides.
  /// [n]: positions 8n + 2t and 8n + 2t + 1 of query g, then g + 8.
  __device__ void score(const StagedChunk<kD>& chunk, int32_t begin, float (&scores)[8][4]) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
    for (int n = 0; n < 8; ++n)
      for (int i = 0; i < 4; ++i) scores[n][i] = 0;
    for (int b = 0; b < kBlocks; ++b) {
      const uint4 low = query[b][0], high = query[b][1];
      for (int n = 0; n < 8; ++n) {
        const uint4 key = chunk.keys[(8 * n + g) * StagedChunk<kD>::kKeyStride + 4 * b + t];
        mma_16x8x16(scores[n], {low.x, high.x, low.y, high.y}, {key.x, key.y});
        mma_16x8x16(scores[n], {low.z, high.z, low.w, high.w}, {key.z, key.w});
      }
    }
    if (begin >= reach[0].first && begin >= reach[1].first) return;
    for (int n = 0; n < 8; ++n)
      for (int i = 0; i < 4; ++i)
        if (begin + 8 * n + 2 * t + i % 2 < reach[i / 2].first) scores[n][i] = -INFINITY;
  }

  /// Takes a chunk in. A query that does not see it keeps every bit.
  __device__ void take(const StagedChunk<kD>& chunk, int32_t begin) {
    bool sees[2];
    for (int h = 0; h < 2; ++h) sees[h] = begin < reach[h].tail && begin + kChunk > reach[h].first;
    if (ballot(sees[0] || sees[1]) == 0) return;

    float scores[8][4];
    score(chunk, begin, scores);
    float scale[2];
    for (int h = 0; h < 2; ++h) scale[h] = weigh(h, sees[h], scores);
    uint32_t weights[4][4];  // 16 positions each
    for (int k = 0; k < 4; ++k)
      for (int i = 0; i < 4; ++i) {
        const float* pair = &scores[2 * k + i / 2][i % 2 * 2];
        weights[k][i] = pack_bf16(pair[0], pair[1]);
      }
    for (int b = 0; b < kBlocks; ++b) add_values(chunk, b, weights, sees, scale);
  }

  /// Scores become weights. @returns  what earlier sums are to be multiplied by.
  __device__ float weigh(int h, bool sees, float (&scores)[8][4]) {
    const float unit = score_scale(kD);
    float highest = -INFINITY;
    for (int n = 0; n < 8; ++n)
      highest = fmaxf(highest, fmaxf(scores[n][2 * h], scores[n][2 * h + 1]));
    highest = fmaxf(highest, shuffle_xor(highest, 1));  // of the lanes of one query
    highest = fmaxf(highest, shuffle_xor(highest, 2));
    const float now = fmaxf(most[h], highest * unit);
    const float scale = exp2f(most[h] - now);
    float sum = 0;
    for (int n = 0; n < 8; ++n)
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
  __device__ void add_values(const StagedChunk<kD>& chunk, int b, const uint32_t (&weights)[4][4],
                             const bool (&sees)[2], const float (&scale)[2]) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
    float added[4][4];
    for (int e = 0; e < 4; ++e)
      for (int i = 0; i < 4; ++i) added[e][i] = 0;
    for (int k = 0; k < 4; ++k) {
      const auto value = [&](int position) {  // four dimensions
        return chunk.values[(16 * k + position) * StagedChunk<kD>::kValueStride * 2 + 8 * b + g];
      };
      const uint2 v0 = value(2 * t), v1 = value(2 * t + 1), v8 = value(2 * t + 8),
                  v9 = value(2 * t + 9);
      mma_16x8x16(added[0], weights[k], {low_halves(v0.x, v1.x), low_halves(v8.x, v9.x)});
      mma_16x8x16(added[1], weights[k], {high_halves(v0.x, v1.x), high_halves(v8.x, v9.x)});
      mma_16x8x16(added[2], weights[k], {low_halves(v0.y, v1.y), low_halves(v8.y, v9.y)});
      mma_16x8x16(added[3], weights[k], {high_halves(v0.y, v1.y), high_halves(v8.y, v9.y)});
    }
    for (int e = 0; e < 4; ++e)
      for (int i = 0; i < 4; ++i)
        if (sees[i / 2]) sums[b][e][i] = fmaf(sums[b][e][i], scale[i / 2], added[e][i]);
  }

  /// @param to  partial_of() query g + 8h.
  __device__ void store(int h, float* to) const {
    const int t = static_cast<int>(threadIdx.x) % 4;
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

  __device__ static uint32_t low_halves(uint32_t a, uint32_t b) { return (a & 0xFFFFU) | b << 16; }
  __device__ static uint32_t high_halves(uint32_t a, uint32_t b) {
    return a >> 16 | (b & 0xFFFF0000U);
  }
};

/// The chunks [begin, end) that any row of the tile sees; every warp finds them by itself.
struct ChunkRange {
  int32_t begin = 0, end = 0;
};
__device__ inline ChunkRange seen_chunks(const TreeAttentionArgs& args, DeviceTile tile) {
  int32_t unseen = INT32_MAX, tail = 0;
  for (int32_t i = static_cast<int32_t>(threadIdx.x) % kWarp; i < tile.count; i += kWarp) {
    const Reach reach = reach_of(args.rows.positions[tile.first + i], args.window);
    unseen = reach.first < unseen ? reach.first : unseen;
    tail = reach.tail > tail ? reach.tail : tail;
  }
  return {-warp_max(-unseen) / kChunk, warp_max(tail) / kChunk};
}

/// A block for a tile (x), key/value head (y) and split (z). Each warp has 16 queries: those of the
/// first row's heads of the group, then of the second's.
template <int kD>
__global__ void __launch_bounds__(kChunkThreads, 2) attend_chunks(TreeAttentionArgs args) {
  begin_kernel();
  const DeviceTile tile = args.tiles[blockIdx.x];
  const int32_t group = static_cast<int32_t>(blockIdx.y), split = static_cast<int32_t>(blockIdx.z);
  ChunkRange range = seen_chunks(args, tile);
  if (range.begin < split * kSplitChunks) range.begin = split * kSplitChunks;
  if (range.end > (split + 1) * kSplitChunks) range.end = (split + 1) * kSplitChunks;
  if (range.begin >= range.end) return;

  const int32_t per_group = static_cast<int32_t>(args.num_heads / args.cache.num_kv_heads);
  const int32_t num_queries = tile.count * per_group;
  const int32_t lane = static_cast<int32_t>(threadIdx.x) % kWarp;
  const int32_t warp_first = static_cast<int32_t>(threadIdx.x) / kWarp * kWarpQueries;
  const auto row_of = [&](int32_t query) { return tile.first + query / per_group; };
  const auto head_of = [&](int32_t query) { return group * per_group + query % per_group; };

  ChunkQueries<kD> queries;
  for (int h = 0; h < 2; ++h) {
    const int32_t query = warp_first + lane / 4 + 8 * h;
    const bool there = query < num_queries;
    queries.reach[h] =
        there ? reach_of(args.rows.positions[row_of(query)], args.window) : Reach{0, 0, 0};
    const Bf16* from =
        there ? args.query + (int64_t{row_of(query)} * args.num_heads + head_of(query)) * kD
              : nullptr;
    for (int b = 0; b < ChunkQueries<kD>::kBlocks; ++b)
      queries.query[b][h] =
          there ? load_word4(from + 32 * b + lane % 4 * 8) : make_uint4(0, 0, 0, 0);
  }

  const int64_t place = cache_place(args.cache, args.layer, args.rows.slots[tile.first], group, 0);
  auto* staged = shared_memory<StagedChunk<kD>>();  // two: one is read while one arrives
  const auto fetch = [&](int32_t chunk) {
    const int64_t at = place + int64_t{chunk} * kChunk * kD;
    if (chunk < range.end) staged[chunk % 2].fetch(args.cache.keys + at, args.cache.values + at);
    copy_async_commit();
  };
  fetch(range.begin);
  for (int32_t chunk = range.begin; chunk < range.end; ++chunk) {
    fetch(chunk + 1);
    copy_async_wait<1>();
    sync_block();
    if (warp_first < num_queries) queries.take(staged[chunk % 2], chunk * kChunk);
    sync_block();
  }

  for (int h = 0; h < 2; ++h) {
    const int32_t query = warp_first + lane / 4 + 8 * h;
    queries.weight[h] += shuffle_xor(queries.weight[h], 1);
    queries.weight[h] += shuffle_xor(queries.weight[h], 2);
    if (query < num_queries)
      queries.store(h, partial_of(args, split, row_of(query), head_of(query)));
  }
}

}  // namespace
}  // namespace medusa
