// The GEMM with quantized weights of one format on AVX2. For kernel files only (simd.h).
#pragma once

#if defined(__AVX2__) && defined(__FMA__) && !defined(__AVX512BW__)

#include "backbone/cpu/gemm/quant_gemm_loop.h"

namespace medusa {
namespace {

/// Sixteen numbers of at most 127 as whole ones, ties to even. @returns their sum.
inline int32_t store_rounded(const F32x16& x, int8_t* to) {
  // Packing takes four numbers of each part in turn.
  const __m256i interleaved =
      _mm256_packs_epi32(_mm256_cvtps_epi32(x.vecs[0]), _mm256_cvtps_epi32(x.vecs[1]));
  const __m256i whole = _mm256_permute4x64_epi64(interleaved, 0b11'01'10'00);
  const __m128i first = _mm256_castsi256_si128(whole), second = _mm256_extracti128_si256(whole, 1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(first, second));
  __m128i sums = _mm_madd_epi16(_mm_add_epi16(first, second), _mm_set1_epi16(1));
  sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0b01'00'11'10));
  sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0b10'11'00'01));
  return _mm_cvtsi128_si32(sums);
}

/// Eight of the sixteen outputs after the other eight, so that the sums of six rows stay in the
/// registers. VPMADDUBSW adds neighboring products in 16 bits, which with quants of 4 bits has
/// room for all eight words of a block (8 · 2 · 15 · 127 < 2^15); a quant of 8 bits is two of 4.
template <int kBits, int kBlock, bool kMins>
struct Avx2QuantGemm {
  static constexpr int64_t kMr = 6;

  /// Each tile is read twice before the next half is, and asks for a share of it each time.
  static int64_t ahead(int64_t half_bytes) { return half_bytes; }

  static void run(const uint8_t* half, const RowBlock* rows, int64_t depth, int64_t ahead,
                  int64_t num_rows, float* sums) {
    switch (num_rows) {
      case 1:
        return multiply<1>(half, rows, depth, ahead, sums);
      case 2:
        return multiply<2>(half, rows, depth, ahead, sums);
      case 3:
        return multiply<3>(half, rows, depth, ahead, sums);
      case 4:
        return multiply<4>(half, rows, depth, ahead, sums);
      case 5:
        return multiply<5>(half, rows, depth, ahead, sums);
      default:
        return multiply<6>(half, rows, depth, ahead, sums);
    }
  }

 private:
  using Layout = QuantTile<kBits, kBlock, kMins>;
  static constexpr int kLoadWords = kBits == 4 ? 2 : 1;  // in a part's 32 bytes

  template <int kRows>
  static void multiply(const uint8_t* half, const RowBlock* rows, int64_t depth, int64_t ahead,
                       float* sums) {
    multiply_vec<kRows>(half, rows, depth, ahead, 0, sums);
    multiply_vec<kRows>(half, rows, depth, ahead, 1, sums);
  }

  /// @param part  which eight outputs.
  template <int kRows>
  [[gnu::noinline]] static void multiply_vec(const uint8_t* half, const RowBlock* rows,
                                             int64_t depth, int64_t ahead, int vec, float* to) {
    Vec sums[kRows] = {};
    for (int64_t d = 0; d < depth; ++d) {
      const uint8_t* from = half + d * Layout::kBytes;
      Layout::prefetch_share(from, ahead, vec);
#pragma GCC unroll 2
      for (int block = 0; block < Layout::kBlocks; ++block)
        add_block<kRows>(from, block, rows + d * kTileRows, vec, sums);
    }
    for (int r = 0; r < kRows; ++r)
      __builtin_memcpy(to + r * kTileRows + vec * kVecLanes, &sums[r], sizeof sums[r]);
  }

  template <int kRows>
  [[gnu::always_inline]] static void add_block(const uint8_t* from, int block, const RowBlock* rows,
                                               int vec, Vec (&sums)[kRows]) {
    __m256i whole[kRows];
    sum_quants<kRows>(from + Layout::kHeaderBytes + vec * kVecBytes, block, rows, whole);
    const Vec scales = upcast_halves(from + block * 32 + vec * kVecLanes * 2);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      Vec quants = _mm256_cvtepi32_ps(whole[r]);
      if (!kMins) quants = quants + splat_vec(static_cast<float>(Layout::zero_of(rows[r], block)));
      sums[r] = multiply_add_vec(scales * splat_vec(rows[r].scale), quants, sums[r]);
    }
    if (!kMins) return;
    const Vec mins = upcast_halves(from + Layout::kScaleBytes + block * 32 + vec * kVecLanes * 2);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      sums[r] = multiply_add_vec(mins, splat_vec(Layout::min_of(rows[r], block)), sums[r]);
  }

  /// whole[r] = quants · the quants of row r over a block, exactly.
  /// @param quants  of a tile and a vector.
  template <int kRows>
  [[gnu::always_inline]] static void sum_quants(const uint8_t* quants, int block,
                                                const RowBlock* rows, __m256i (&whole)[kRows]) {
    constexpr int kWords = 8 / Layout::kBlocks;
    const __m256i mask = _mm256_set1_epi8(15);
    __m256i low[kRows] = {}, high[kRows] = {};
#pragma GCC unroll 8
    for (int i = 0; i < kWords; i += kLoadWords) {
      const int word = block * kWords + i;
      const auto both = load_vec<__m256i>(quants + word / kLoadWords * 64);
      const __m256i lower = _mm256_and_si256(both, mask);
      const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(both, 4), mask);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i x = four_quants(rows[r], word);
        const __m256i y = kBits == 4 ? four_quants(rows[r], word + 1) : x;
        low[r] = _mm256_add_epi16(low[r], _mm256_maddubs_epi16(lower, x));
        __m256i& other = kBits == 4 ? low[r] : high[r];
        other = _mm256_add_epi16(other, _mm256_maddubs_epi16(upper, y));
      }
      keep_here(low);
      if (kBits == 8) keep_here(high);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      whole[r] = _mm256_madd_epi16(low[r], _mm256_set1_epi16(1));
      if (kBits == 8)
        whole[r] = _mm256_add_epi32(whole[r], _mm256_madd_epi16(high[r], _mm256_set1_epi16(16)));
    }
  }

  static __m256i four_quants(const RowBlock& row, int word) {
    return _mm256_set1_epi32(load_vec<int32_t>(row.quants + word * 4));
  }

  /// Or g++ 12 puts all additions off to the end of the block, and its products into memory.
  template <int kRows>
  static void keep_here(__m256i (&sums)[kRows]) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) asm("" : "+x"(sums[r]));
  }
};

}  // namespace
}  // namespace medusa

#endif
