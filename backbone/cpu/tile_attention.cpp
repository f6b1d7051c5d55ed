#include "backbone/cpu/tile_attention.h"

#include "backbone/cpu/avx512.h"
#include "backbone/cpu/tile_layout.h"

namespace medusa {
namespace {

constexpr int64_t kBlock = 32;     // cache rows that one tile product takes
constexpr float kUnseen = -1e30F;  // 2 to the power of it is 0

int64_t block_end(int64_t rows) { return ceil_div(rows, kBlock) * kBlock; }
int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t cache_block(const AttentionPass& pass, const AttentionTile& tile) {
  return (tile.slot * pass.num_kv_heads + tile.group) * pass.capacity * pass.head_size;
}

/// scores[query][cache row] = query · key.
void score(const AttentionPass& pass, const AttentionTile& tile, const AttentionScratch& scratch) {
  const int64_t d = pass.head_size;
  const uint16_t* query = pass.query + (tile.group * pass.query_rows + tile.first_query) * d;
  const uint16_t* keys = pass.keys + cache_block(pass, tile);
  for (int64_t row = 0; row < tile.end; row += kBlock) {
    const uint16_t* low = keys + row * d;
    const uint16_t* high = low + kTileRows * d;
    _tile_zero(0);
    _tile_zero(1);
    for (int64_t dim = 0; dim < d; dim += kTileDepth) {
      _tile_loadd(4, query + dim, d * 2);
      _tile_loadd(6, low + dim * kTileRows, 64);
      _tile_loadd(7, high + dim * kTileRows, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(0, scratch.scores + row, scratch.stride * 4);
    _tile_stored(1, scratch.scores + row + kTileRows, scratch.stride * 4);
  }
}

/// Weights 2^(scale · (score - largest)) of the rows seen, in path order; 0 up to `end`.
/// @param end      multiple of 32, at least row.length.
/// @returns        one over their sum.
float soften(const AttentionRow& row, float scale, int64_t end, float* scores, uint16_t* weights) {
  if (!row.straight)
    for (int64_t i = 0; i < row.length - row.start; ++i)  // path[i] >= start + i: read in time
      scores[row.start + i] = scores[row.path[i]];
  for (int64_t i = row.length; i < end; ++i) scores[i] = kUnseen;

  __m512 top = _mm512_set1_ps(kUnseen);
  for (int64_t i = 0; i < end; i += kLanes) top = _mm512_max_ps(top, _mm512_loadu_ps(scores + i));
  const __m512 factor = _mm512_set1_ps(scale);
  const __m512 shift = _mm512_set1_ps(_mm512_reduce_max_ps(top) * scale);

  __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
  for (int64_t i = 0; i < end; i += kBlock) {
    const __m512 a = exp2_of(_mm512_fmsub_ps(_mm512_loadu_ps(scores + i), factor, shift));
    const __m512 b = exp2_of(_mm512_fmsub_ps(_mm512_loadu_ps(scores + i + kLanes), factor, shift));
    even = _mm512_add_ps(even, a);
    odd = _mm512_add_ps(odd, b);
    store_bf16(weights + i, a);
    store_bf16(weights + i + kLanes, b);
  }
  return 1.0F / _mm512_reduce_add_ps(_mm512_add_ps(even, odd));
}

/// Adds weights · values of cache rows [begin, end), 32 dimensions from `dim` on, to tiles 0 and 1.
/// @param values  where row `begin` lies.
void mix_blocks(const uint16_t* values, const uint16_t* weights, int64_t stride, int64_t begin,
                int64_t end, int64_t dim, int64_t head_size) {
  const uint16_t* at = values + dim * 2;
  for (int64_t row = begin; row < end; row += kBlock, at += kBlock * head_size) {
    _tile_loadd(4, weights + row, stride * 2);
    _tile_loadd(6, at, head_size * 4);
    _tile_loadd(7, at + 2 * kTileRows, head_size * 4);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  }
}

/// The values of the rows [begin, row.length) of a scattered path, as they would lie in the cache.
/// Rows of the cache come from there, rows of the pass from its plain copy, zeros behind the path.
void gather_path(const AttentionPass& pass, const AttentionRow& row, int64_t group,
                 const uint16_t* cached, int64_t begin, uint16_t* out) {
  const int64_t d = pass.head_size;
  const uint16_t* fresh =
      pass.fresh_values + (group * pass.fresh_rows + row.segment_begin - row.start) * d;
  // Sixteen dimensions of one row as the lower halves of words.
  const auto words = [&](int64_t at, int64_t dim) {
    if (at >= row.length) return _mm512_setzero_si512();
    if (at >= row.start) {
      const uint16_t* from = fresh + row.path[at - row.start] * d + dim;
      return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    }
    const __m512i both = _mm512_loadu_si512(cached + at / 2 * 2 * d + dim * 2);
    return at % 2 != 0 ? _mm512_srli_epi32(both, 16)
                       : _mm512_and_si512(both, _mm512_set1_epi32(0xFFFF));
  };
  for (int64_t at = begin; at < block_end(row.length); at += 2)
    for (int64_t dim = 0; dim < d; dim += kLanes, out += 2 * kLanes)
      _mm512_storeu_si512(
          out, _mm512_or_si512(words(at, dim), _mm512_slli_epi32(words(at + 1, dim), 16)));
}

/// Divides by the sum of weights and writes one head of one row.
void write_head(const AttentionPass& pass, int64_t group, int64_t query, float inverse,
                const float* sums) {
  const int64_t n = query / pass.heads_per_group;
  const int64_t head = group * pass.heads_per_group + query % pass.heads_per_group;
  const __m512 factor = _mm512_set1_ps(inverse);
  for (int64_t dim = 0; dim < pass.head_size; dim += kLanes)
    store_bf16(pass.out + tiled_index(n, head * pass.head_size + dim, pass.out_depth),
               _mm512_mul_ps(_mm512_loadu_ps(sums + dim), factor));
}

/// Continues the sums of queries [from, to) of the tile, all of one row, over the row's own path.
void mix_path(const AttentionPass& pass, const AttentionTile& tile, const AttentionRow& row,
              int64_t begin, int64_t query, const AttentionScratch& scratch, float* out) {
  const int64_t d = pass.head_size;
  const uint16_t* cached = pass.values + cache_block(pass, tile);
  const uint16_t* values = cached + begin * d;
  if (!row.straight) {
    gather_path(pass, row, tile.group, cached, begin, scratch.path_values);
    values = scratch.path_values;
  }
  finish_stores();
  for (int64_t dim = 0; dim < d; dim += kPairOutputs) {
    const float* sums = scratch.sums + query * d + dim;
    _tile_loadd(0, sums, d * 4);
    _tile_loadd(1, sums + kTileRows, d * 4);
    mix_blocks(values, scratch.weights + query * scratch.stride, scratch.stride, begin, row.length,
               dim, d);
    _tile_stored(0, out + dim, d * 4);
    _tile_stored(1, out + dim + kTileRows, d * 4);
  }
}

}  // namespace

void attend(const AttentionPass& pass, const AttentionTile& tile, const AttentionScratch& scratch) {
  const int64_t d = pass.head_size, per_group = pass.heads_per_group;
  const int64_t end = block_end(tile.max_length);
  const auto row_of = [&](int64_t query) -> const AttentionRow& {
    return pass.rows[(tile.first_query + query) / per_group];
  };
  finish_stores();
  score(pass, tile, scratch);
  const float scale = kLog2E / __builtin_sqrtf(static_cast<float>(d));
  float inverse[kTileRows];
  for (int64_t query = 0; query < tile.num_queries; ++query)
    inverse[query] = soften(row_of(query), scale, end, scratch.scores + query * scratch.stride,
                            scratch.weights + query * scratch.stride);

  // Blocks before the first row of the pass lie alike for all rows, and so does everything if all
  // paths are straight.
  const int64_t shared = tile.straight ? end : row_of(0).start / kBlock * kBlock;
  const uint16_t* values = pass.values + cache_block(pass, tile);
  finish_stores();
  for (int64_t dim = 0; dim < d; dim += kPairOutputs) {
    _tile_zero(0);
    _tile_zero(1);
    mix_blocks(values, scratch.weights, scratch.stride, 0, shared, dim, d);
    _tile_stored(0, scratch.sums + dim, d * 4);
    _tile_stored(1, scratch.sums + dim + kTileRows, d * 4);
  }
  float* path_sums = scratch.sums + 2 * kTileRows * d;
  for (int64_t query = 0; query < tile.num_queries;) {
    const int64_t first = tile.first_query + query;
    const int64_t heads = smaller(per_group - first % per_group, tile.num_queries - query);
    const float* sums = scratch.sums + query * d;
    if (!tile.straight) {
      mix_path(pass, tile, row_of(query), shared, query, scratch, path_sums);
      sums = path_sums;
    }
    for (int64_t i = 0; i < heads; ++i)
      write_head(pass, tile.group, first + i, inverse[query + i], sums + i * d);
    query += heads;
  }
}

}  // namespace medusa
