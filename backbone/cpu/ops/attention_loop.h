// Grouped-query attention over a cache in KvLayout::Tiles, in path order. For kernel files only
// (simd.h).
//
// A row is computed as if its path lay right behind the committed rows: the scores of the path are
// moved together before the softmax, and the values are taken in that order. So every sum has the
// same terms in the same order as when the path's tokens are decoded one by one, where they do lie
// there, and a tree gives the same bits as plain decoding. What is not seen has weight 0 and adds
// 0; so stale rows of the cache do no harm as long as they are finite.
#pragma once

#include "backbone/cpu/layout/tile_layout.h"
#include "backbone/cpu/ops/attention_types.h"
#include "backbone/cpu/ops/gather_softmax.h"
#include "backbone/cpu/simd/simd.h"

namespace medusa {
namespace {

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

template <typename Kernel>
class TileAttention {
 public:
  using Element = typename Kernel::Element;

  TileAttention(const AttentionLayer& layer, const AttentionTile& tile,
                const AttentionScratch& scratch)
      : layer_(layer),
        tile_(tile),
        scratch_(scratch),
        weights_(static_cast<Element*>(scratch.weights)),
        d_(layer.head_size),
        per_group_(layer.heads_per_group()),
        last_block_((block_end(tile.end) - 1) / kBlock) {}

  void run() {
    score();
    const int64_t end = block_end(tile_.max_length);
    const float scale = kLog2E / __builtin_sqrtf(static_cast<float>(d_));
    for (int64_t query = 0; query < tile_.num_queries; ++query)
      inverse_[query] = softmax<Kernel>(row_of(query), scale, layer_.window, end,
                                        scratch_.scores + query * scratch_.stride,
                                        weights_ + query * scratch_.stride);
    // Blocks before the first row of the pass lie alike for all rows of the tile, and so does
    // everything if all paths are contiguous.
    const int64_t shared = tile_.contiguous ? end : row_of(0).start / kBlock * kBlock;
    for (int64_t i = 0; i < tile_.num_queries * d_; i += kLanes)
      store_f32(scratch_.sums + i, splat(0));
    add_cache_values(0, shared, 0, tile_.num_queries, scratch_.sums);
    for (int64_t query = 0, heads = 0; query < tile_.num_queries; query += heads) {
      heads = smaller(per_group_ - (tile_.first_query + query) % per_group_,
                      tile_.num_queries - query);  // of the same row
      float* sums = scratch_.sums + query * d_;
      if (!tile_.contiguous) sums = add_path_values(row_of(query), shared, query, heads);
      for (int64_t i = 0; i < heads; ++i) write_head(query + i, sums + i * d_);
    }
  }

 private:
  const AttentionRow& row_of(int64_t query) const {
    return layer_.rows[(tile_.first_query + query) / per_group_];
  }

  /// Bytes from one of the slot's blocks to another; they may be of different slabs.
  int64_t distance(int64_t from, int64_t to) const {
    return reinterpret_cast<intptr_t>(tile_.blocks[to]) -
           reinterpret_cast<intptr_t>(tile_.blocks[from]);
  }
  bool follows_in_slab(int64_t block) const {
    return distance(block - 1, block) ==
           layer_.block_stride * static_cast<int64_t>(sizeof(uint16_t));
  }

  /// Bytes from a block to the one after next: what the GEMMs ask for in advance.
  int64_t ahead(int64_t block) const { return distance(block, smaller(block + 2, last_block_)); }

  /// Calls body(first, count) for groups of queries that the kernel takes at once.
  template <typename Body>
  static void for_each_call(int64_t begin, int64_t count, const Body& body) {
    const int64_t per_call = ceil_div(count, ceil_div(count, Kernel::kMr));
    for (int64_t done = 0; done < count; done += per_call)
      body(begin + done, smaller(per_call, count - done));
  }

  /// scores[query][cache row] = query · key.
  void score() {
    const Element* query = static_cast<const Element*>(layer_.query) +
                           (tile_.group * layer_.query_rows + tile_.first_query) * d_;
    const int64_t keys_of_head = layer_.keys_of(tile_.group);
    for (int64_t row = 0; row < tile_.end; row += kBlock) {
      const uint16_t* keys = tile_.blocks[row / kBlock] + keys_of_head;
      PairOperand pair{keys, keys + kTileRows * d_};
      pair.tile_stride = kTileElements;
      pair.low_ahead = pair.high_ahead = ahead(row / kBlock);
      for_each_call(0, tile_.num_queries, [&](int64_t first, int64_t count) {
        float* to = scratch_.scores + first * scratch_.stride + row;
        Kernel::template multiply<false>({query + first * d_, d_, kTileDepth}, pair,
                                         d_ / kTileDepth, count,
                                         {to, to + kTileRows, scratch_.stride});
      });
    }
  }

  /// Values of blocks that lie at one distance.
  struct ValueBlocks {
    const uint16_t* first = nullptr;
    int64_t stride = 0;  // numbers to the next one
    int64_t ahead = 0;   // as ahead(), in bytes
  };

  /// sums[query][dimension] += weights · values over the cache rows [begin, end), for queries
  /// [first, first + count).
  /// @param values  of the block that row `begin` starts.
  /// @param sums    of query `first`.
  void add_values(const ValueBlocks& values, int64_t begin, int64_t end, int64_t first,
                  int64_t count, float* sums) {
    for (int64_t dim = 0; dim < d_; dim += kPairOutputs) {
      const uint16_t* at = values.first + dim * 2;
      const PairOperand pair{at,           at + 2 * kTileRows, 2 * d_, values.stride,
                             values.ahead, values.ahead};
      for_each_call(first, count, [&](int64_t query, int64_t rows) {
        float* to = sums + (query - first) * d_ + dim;
        Kernel::template multiply<true>(
            {weights_ + query * scratch_.stride + begin, scratch_.stride, kTileDepth}, pair,
            ceil_div(end - begin, kBlock), rows, {to, to + kTileRows, d_});
      });
    }
  }

  /// The same where the values lie in the slot's own blocks: those that follow each other in memory
  /// at once. (The sums that a GEMM leaves are those that the next one starts from, so where it
  /// is cut does not change them.)
  void add_cache_values(int64_t begin, int64_t end, int64_t first, int64_t count, float* sums) {
    const int64_t last = ceil_div(end, kBlock);
    for (int64_t block = begin / kBlock, next = 0; block < last; block = next) {
      next = block + 1;
      while (next < last && follows_in_slab(next)) ++next;
      add_values(
          {tile_.blocks[block] + layer_.values_of(tile_.group), layer_.block_stride, ahead(block)},
          block * kBlock, smaller(next * kBlock, end), first, count, sums);
    }
  }

  /// Continues the sums of `heads` queries, all of one row, from `begin` on over the row's own
  /// path.
  /// @returns  [heads][D]
  float* add_path_values(const AttentionRow& row, int64_t begin, int64_t query, int64_t heads) {
    // A copy: a kernel may add to more rows than these, and those still need what they hold.
    float* sums = scratch_.sums + kTileRows * d_;
    for (int64_t i = 0; i < heads * d_; i += kLanes)
      store_f32(sums + i, load_f32(scratch_.sums + query * d_ + i));
    if (row.contiguous) {
      add_cache_values(begin, row.length, query, heads, sums);
      return sums;
    }
    gather_path(layer_, row, tile_.group, begin, scratch_.path_values);
    const int64_t size = kBlock * d_;
    add_values({scratch_.path_values, size, 2 * size * static_cast<int64_t>(sizeof(uint16_t))},
               begin, row.length, query, heads, sums);
    return sums;
  }

  /// Divides by the sum of weights and writes one head of one row.
  void write_head(int64_t query, const float* sums) {
    const int64_t at = tile_.first_query + query, n = at / per_group_;
    const int64_t column = (tile_.group * per_group_ + at % per_group_) * d_;
    const F32x16 factor = splat(inverse_[query]);
    auto* out = static_cast<Element*>(layer_.attention_out);
    for (int64_t dim = 0; dim < d_; dim += kLanes)
      Kernel::store(out + tiled_index(n, column + dim, layer_.attention_out_depth),
                    load_f32(sums + dim) * factor);
  }

  const AttentionLayer& layer_;
  const AttentionTile& tile_;
  const AttentionScratch& scratch_;
  Element* const weights_;
  const int64_t d_, per_group_;
  const int64_t last_block_;  // that any of its queries reads
  float inverse_[kTileRows];  // one over the sum of a query's weights
};

template <typename Kernel>
void attend(const AttentionLayer& layer, const AttentionTile& tile,
            const AttentionScratch& scratch) {
  TileAttention<Kernel>(layer, tile, scratch).run();
}

}  // namespace
}  // namespace medusa
