// Attention of the rows of trees. The blocks of a tile and key/value head take chunks of the
// context or the rows' tails, and the last of them joins what all have left.
//
// Warps come in fours: each takes a quarter of every chunk, or every fourth unit of a tail, and the
// four add up in a fixed order. So a row's sums have the same terms in the same order whatever rows
// are beside it, and a single row still has four warps.
#pragma once

#include "backbone/cuda/kernels/attention_chunk.cuh"
#include "backbone/cuda/kernels/attention_tail.cuh"

namespace medusa {
namespace {

constexpr int64_t kMostHeadsPerGroup = 16;
constexpr int kTileQueries = 64;  // rows of a tile times heads of a group
constexpr int kQuarterThreads = kQuarters * kWarp;

bool attention_supports(int64_t head_size, int64_t heads_per_group) {
  return (head_size == 64 || head_size == 96 || head_size == 128) && heads_per_group >= 1 &&
         heads_per_group <= kMostHeadsPerGroup;
}

int32_t attention_tile_rows(int64_t heads_per_group) {
  return static_cast<int32_t>(kTileQueries / heads_per_group);
}

int64_t attention_scratch(int64_t num_rows, int64_t num_heads, int64_t head_size,
                          int64_t max_context) {
  return (num_splits(max_context) + 1) * num_rows * num_heads * partial_size(head_size);
}

/// A block of a tile, key/value head and split: kSets times four warps.
template <int kD, int kSets>
struct AttentionBlock {
  static constexpr size_t kMergeFloats = size_t{UnitQueries<kD>::kLaneFloats} * kWarp;
  static constexpr size_t kStagedBytes = kSplitChunks * sizeof(StagedChunk<kD>);
  static constexpr size_t kMergeBytes = sizeof(float) * kMergeFloats * 2 * kSets;
  static constexpr size_t kSharedBytes = kStagedBytes > kMergeBytes ? kStagedBytes : kMergeBytes;

  const TreeAttentionArgs& args;
  const int32_t per_group;  // query heads of a key/value head

  // Asked anew wherever they are needed: they would take registers from the sums.
  __device__ DeviceTile tile() const { return args.tiles[blockIdx.x]; }
  __device__ static int32_t group() { return static_cast<int32_t>(blockIdx.y); }
  __device__ static int32_t set() { return static_cast<int32_t>(threadIdx.x / kQuarterThreads); }
  __device__ static int32_t quarter() {
    return static_cast<int32_t>(threadIdx.x / kWarp % kQuarters);
  }

  /// This lane's query h of its warp.
  __device__ int32_t lane_query(int h) const {
    return static_cast<int32_t>(threadIdx.x % kWarp) / 4 + 8 * h;
  }
  /// Where in args.query it begins.
  __device__ int32_t query_of(int32_t row, int32_t head) const {
    return (row * static_cast<int32_t>(args.num_heads) + head) * kD;
  }

  /// The tails of the tile's rows, one to each set of warps.
  __device__ void take_tails(int32_t block) const {
    // Asked anew behind the sums, as tile() is.
    const auto is_there = [&] { return block * kSets + set() < tile().count; };
    const auto row = [&] { return tile().first + block * kSets + set(); };
    UnitQueries<kD> queries(args.query, query_of(tile().first, group() * per_group));
    if (is_there()) {
      const Reach reach = reach_of(args.rows.positions[row()], args.window);
      for (int h = 0; h < 2; ++h) {
        if (lane_query(h) >= per_group) continue;
        queries.set(h, query_of(row(), group() * per_group + lane_query(h)),
                    reach.first > reach.tail ? reach.first : reach.tail, reach.end);
      }
      for (int32_t begin = reach.tail + quarter() * kUnit; begin < reach.end; begin += kChunk)
        queries.take(TailRows<kD>(args, row(), group(), begin), begin);
    }
    merge_quarters(queries);
    if (!is_there() || quarter() != 0) return;
    for (int h = 0; h < 2; ++h)
      if (lane_query(h) < per_group)
        queries.store(h, partial_of(args, num_splits(args.max_context), row(),
                                    group() * per_group + lane_query(h)));
  }

  /// The chunks of a split. Sets of warps have sixteen queries each: those of the first row's heads
  /// of the group, then of the second's.
  __device__ void take_chunks(int32_t split) const {
    ChunkRange range = seen_chunks(args, tile());
    if (range.begin < split * kSplitChunks) range.begin = split * kSplitChunks;
    if (range.end > (split + 1) * kSplitChunks) range.end = (split + 1) * kSplitChunks;
    if (range.begin >= range.end) return;

    const int64_t place = slot_place<kD>(args, tile().first, group());
    auto* staged = shared_memory<StagedChunk<kD>>();
    // All are on their way before the first is read: their place takes no registers from the sums.
    for (int32_t chunk = range.begin; chunk < range.begin + kSplitChunks; ++chunk) {
      const int64_t at = place + int64_t{chunk} * kChunk * kD;
      if (chunk < range.end)
        staged[chunk % kSplitChunks].fetch(args.cache.keys + at, args.cache.values + at);
      copy_async_commit();
    }
    const auto query = [&](int h) { return set() * kWarpQueries + lane_query(h); };
    const auto is_there = [&](int h) { return query(h) < tile().count * per_group; };
    const auto row = [&](int h) { return tile().first + query(h) / per_group; };
    const auto head = [&](int h) { return group() * per_group + query(h) % per_group; };
    UnitQueries<kD> queries(args.query, query_of(tile().first, group() * per_group));
    for (int h = 0; h < 2; ++h) {
      if (!is_there(h)) continue;
      const Reach reach = reach_of(args.rows.positions[row(h)], args.window);
      queries.set(h, query_of(row(h), head(h)), reach.first, reach.tail);
    }
    for (int32_t chunk = range.begin; chunk < range.end; ++chunk) {
      copy_async_wait<kSplitChunks - 1>();
      sync_block();
      queries.take(StagedRows<kD>{staged[chunk % kSplitChunks], quarter() * kUnit},
                   chunk * kChunk + quarter() * kUnit);
      copy_async_commit();  // of nothing: the next chunk is waited for
    }
    sync_block();
    merge_quarters(queries);
    if (quarter() != 0) return;
    for (int h = 0; h < 2; ++h)
      if (is_there(h)) queries.store(h, partial_of(args, split, row(h), head(h)));
  }

  /// The first quarter gets what all four have: 1 to 0 and 3 to 2, then 2 to 0.
  __device__ static void merge_quarters(UnitQueries<kD>& queries) {
    float* kept = shared_memory<float>() + (set() * 2 + quarter() / 2) * kMergeFloats;
    if (quarter() % 2 == 1) queries.keep(kept);
    sync_block();
    if (quarter() % 2 == 0) queries.merge(kept);
    if (quarter() == 2) queries.keep(kept);
    sync_block();
    if (quarter() == 0) queries.merge(kept + kMergeFloats);
    queries.add_up_weights();
  }

  /// Whether all other blocks of this tile and head have left their sums.
  __device__ bool is_last() const {
    __shared__ bool last;
    sync_block();
    if (threadIdx.x == 0) {
      memory_fence();
      int32_t* arrived = args.arrived + blockIdx.x * gridDim.y + blockIdx.y;
      last = atomicAdd(arrived, 1) == static_cast<int32_t>(gridDim.z) - 1;
      if (last) *arrived = 0;  // for the next pass
    }
    sync_block();
    return last;
  }

  /// Splits in order, then the tail; a thread for four dimensions of a query.
  __device__ void join() const {
    constexpr int kQuads = kD / 4;
    const DeviceTile tile = this->tile();
    memory_fence();
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < tile.count * per_group * kQuads;
         i += static_cast<int32_t>(blockDim.x)) {
      const int32_t query = i / kQuads, d = i % kQuads * 4;
      const int32_t row = tile.first + query / per_group,
                    head = group() * per_group + query % per_group;
      const Reach reach = reach_of(args.rows.positions[row], args.window);
      const bool chunks = reach.first < reach.tail;
      const int32_t begin = chunks ? reach.first / kSplit : 0;
      const int32_t end = chunks ? (reach.tail + kSplit - 1) / kSplit : 0;
      const float* tail = partial_of(args, num_splits(args.max_context), row, head);
      float most = load_fresh(tail + kD).x;
      for (int32_t split = begin; split < end; ++split)
        most = fmaxf(most, load_fresh(partial_of(args, split, row, head) + kD).x);
      float weight = 0;
      float4 sum = make_float4(0, 0, 0, 0);
      for (int32_t split = begin; split <= end; ++split) {
        const float* partial = split < end ? partial_of(args, split, row, head) : tail;
        const float4 ends = load_fresh(partial + kD), each = load_fresh(partial + d);
        const float scale = exp2f(ends.x - most);
        weight = fmaf(ends.y, scale, weight);
        sum = make_float4(fmaf(each.x, scale, sum.x), fmaf(each.y, scale, sum.y),
                          fmaf(each.z, scale, sum.z), fmaf(each.w, scale, sum.w));
      }
      Bf16* out = args.out + (int64_t{row} * args.num_heads + head) * kD + d;
      *reinterpret_cast<uint2*>(out) = make_uint2(pack_bf16(sum.x / weight, sum.y / weight),
                                                  pack_bf16(sum.z / weight, sum.w / weight));
    }
  }
};

/// A block for a tile (x), key/value head (y) and either kSets rows' tails or a split (z).
template <int kD, int kSets>
__global__ void __launch_bounds__(kSets* kQuarterThreads)
    attend_rows(TreeAttentionArgs args, int32_t tail_blocks) {
  begin_kernel();
  const auto per_group =
      static_cast<int32_t>(args.num_heads) / static_cast<int32_t>(args.cache.num_kv_heads);
  const AttentionBlock<kD, kSets> block{args, per_group};
  const auto z = static_cast<int32_t>(blockIdx.z);
  if (z < tail_blocks)
    block.take_tails(z);
  else
    block.take_chunks(z - tail_blocks);
  if (block.is_last()) block.join();
}

template <int kD, int kSets>
void attend_sets(const TreeAttentionArgs& args, int64_t most_rows, DeviceStream stream) {
  const int64_t tail_blocks = (most_rows + kSets - 1) / kSets;
  launch(attend_rows<kD, kSets>,
         dim3(static_cast<unsigned>(args.num_tiles), static_cast<unsigned>(args.cache.num_kv_heads),
              static_cast<unsigned>(tail_blocks + num_splits(args.max_context))),
         kSets * kQuarterThreads, AttentionBlock<kD, kSets>::kSharedBytes, stream, args,
         static_cast<int32_t>(tail_blocks));
}

template <int kD>
void attend_heads(const TreeAttentionArgs& args, DeviceStream stream) {
  const int64_t per_group = args.num_heads / args.cache.num_kv_heads;
  const int64_t most_rows = args.rows.count < args.tile_rows ? args.rows.count : args.tile_rows;
  if (most_rows * per_group <= kWarpQueries)
    attend_sets<kD, 1>(args, most_rows, stream);
  else
    attend_sets<kD, kTileQueries / kWarpQueries>(args, most_rows, stream);
}

void attend(const TreeAttentionArgs& args, DeviceStream stream) {
  if (args.rows.count == 0) return;
  switch (args.cache.head_size) {
    case 64:
      return attend_heads<64>(args, stream);
    case 96:
      return attend_heads<96>(args, stream);
    case 128:
      return attend_heads<128>(args, stream);
    default:
      return;  // not supported
  }
}

}  // namespace
}  // namespace medusa
