#include "backbone/cpu/qkv_product.h"

#include "backbone/cpu/kv_tiles.h"
#include "backbone/cpu/product_loop.h"

namespace medusa {
namespace {

/// One pair of output blocks of one row: 32 numbers of one head.
struct HeadPart {
  int64_t head = 0;   // among heads of its kind: query, key or value
  int64_t block = 0;  // which of the head's pairs
};

/// Turns the pair: lane i of low and high are dimensions that turn together.
void rotate(const QkvTarget& t, const QkvRow& row, int64_t block, __m512& low, __m512& high) {
  const int64_t at = row.position * (t.head_size / 2) + block * kTileRows;
  const __m512 cos = _mm512_loadu_ps(t.cos + at), sin = _mm512_loadu_ps(t.sin + at);
  const __m512 turned = _mm512_fmsub_ps(low, cos, _mm512_mul_ps(high, sin));
  high = _mm512_fmadd_ps(high, cos, _mm512_mul_ps(low, sin));
  low = turned;
}

void write_query(const QkvTarget& t, int64_t n, HeadPart part, __m512 low, __m512 high) {
  const int64_t per_group = t.num_heads / t.num_kv_heads;
  const int64_t group = part.head / per_group, head = part.head % per_group;
  uint16_t* to = t.query + (group * t.query_rows + n * per_group + head) * t.head_size +
                 part.block * kTileRows;
  store_bf16(to, low);
  store_bf16(to + t.head_size / 2, high);
}

/// The (slot, head) block of a layer's keys or values.
int64_t block_of(const QkvTarget& t, const QkvRow& row, int64_t head) {
  return (row.slot * t.num_kv_heads + head) * t.capacity * t.head_size;
}

void write_key(const QkvTarget& t, const QkvRow& row, HeadPart part, __m512 low, __m512 high) {
  // Sixteen words of two neighbouring dimensions; in the cache a word lies 16 words behind the one
  // before it, and those of `high` a quarter of the block further.
  const __m512i words = _mm512_inserti64x4(_mm512_castsi256_si512(to_bf16(low)), to_bf16(high), 1);
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7);
  const int half = static_cast<int>(t.head_size) / 4 * 16;
  const __m512i index = _mm512_mask_add_epi32(_mm512_slli_epi32(lane, 4), 0xFF00,
                                              _mm512_slli_epi32(lane, 4), _mm512_set1_epi32(half));
  uint16_t* to = t.keys + block_of(t, row, part.head) +
                 tile_key_index(row.cache_row, part.block * kTileRows, t.head_size);
  _mm512_i32scatter_epi32(to, index, words, 4);
}

void write_value(const QkvTarget& t, const QkvRow& row, int64_t n, HeadPart part, __m512 low,
                 __m512 high) {
  const int64_t dim = part.block * kPairOutputs;
  const __m256i bits[2] = {to_bf16(low), to_bf16(high)};
  uint16_t* fresh = t.fresh_values + (part.head * t.fresh_rows + n) * t.head_size + dim;
  // An even row fills the lower halves of the words that it shares with the next row.
  uint16_t* pair = t.values + block_of(t, row, part.head) +
                   tile_value_index(row.cache_row & ~int64_t{1}, dim, t.head_size);
  const bool odd = row.cache_row % 2 != 0;
  const __mmask32 mine = odd ? 0xAAAAAAAA : 0x55555555;
  for (int64_t i = 0; i < 2; ++i) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(fresh + i * kLanes), bits[i]);
    const __m512i words = _mm512_cvtepu16_epi32(bits[i]);
    _mm512_mask_storeu_epi16(pair + i * 2 * kLanes, mine,
                             odd ? _mm512_slli_epi32(words, 16) : words);
  }
}

}  // namespace

void product_qkv(const TileWeightView& weight, const uint16_t* rows, int64_t num_rows,
                 PairRange range, const QkvTarget& target) {
  const QkvTarget t = target;
  const int64_t per_head = t.head_size / kPairOutputs;
  const int64_t first_key = t.num_heads, first_value = first_key + t.num_kv_heads;
  for_each_pair(weight, rows, num_rows, range,
                [&](int64_t pair, int64_t n, __m512 low, __m512 high) {
                  const QkvRow& row = t.rows[n];
                  HeadPart part{pair / per_head, pair % per_head};
                  if (part.head >= first_value) {
                    part.head -= first_value;
                    write_value(t, row, n, part, low, high);
                    return;
                  }
                  rotate(t, row, part.block, low, high);
                  if (part.head < first_key) {
                    write_query(t, n, part, low, high);
                  } else {
                    part.head -= first_key;
                    write_key(t, row, part, low, high);
                  }
                });
}

}  // namespace medusa
