// GEMMs with quantized weights on AVX512-VNNI: bytes of four neighboring k at once, summed as
// integers inside a block and as floats from block to block. For kernel files only (simd.h).
#pragma once

#if defined(__AVX512VNNI__)

#include "backbone/cpu/gemm/avx512_kernel.h"
#include "backbone/cpu/gemm/quant_gemm_loop.h"

namespace medusa {
namespace {

/// Sixteen outputs by 32 elements of k as bytes: word w holds four of each output.
template <int kBits>
inline void load_words(const uint8_t* quants, __m512i (&words)[8]) {
  if constexpr (kBits == 8) {
#pragma GCC unroll 8
    for (int w = 0; w < 8; ++w) words[w] = _mm512_loadu_si512(quants + w * 64);
  } else {
    const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512i both = _mm512_loadu_si512(quants + j * 64);
      words[2 * j] = _mm512_and_si512(both, low);
      words[2 * j + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
    }
  }
}

inline __m512 load_halves(const uint8_t* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

/// sums[r] += four words · the quants of row r, for up to four rows. In
/// assembly: g++ 12 does not fold the broadcast of four quants into the product and runs out of
/// registers; and rows side by side hide the latency of each one's chain.
template <int kRows>
inline void add_words(const __m512i* words, const int8_t* quants, __m512i (&sums)[kRows]) {
#define MEDUSA_DOT(word, row) \
  "vpdpbusd 4*" #word "+64*" #row "(%[quants])%{1to16%}, %[w" #word "], %[s" #row "]\n\t"
#define MEDUSA_FOUR_WORDS(rows) rows(0) rows(1) rows(2) rows(3)
#define MEDUSA_WORDS                                                                \
  [quants] "r"(quants), [w0] "v"(words[0]), [w1] "v"(words[1]), [w2] "v"(words[2]), \
      [w3] "v"(words[3]), "m"(*reinterpret_cast<Quants*>(quants))
  using Quants = const int8_t[64 * kRows];
  if constexpr (kRows == 1) {
#define MEDUSA_ROWS(word) MEDUSA_DOT(word, 0)
    asm(MEDUSA_FOUR_WORDS(MEDUSA_ROWS) : [s0] "+v"(sums[0]) : MEDUSA_WORDS);
#undef MEDUSA_ROWS
  } else if constexpr (kRows == 2) {
#define MEDUSA_ROWS(word) MEDUSA_DOT(word, 0) MEDUSA_DOT(word, 1)
    asm(MEDUSA_FOUR_WORDS(MEDUSA_ROWS) : [s0] "+v"(sums[0]), [s1] "+v"(sums[1]) : MEDUSA_WORDS);
#undef MEDUSA_ROWS
  } else if constexpr (kRows == 3) {
#define MEDUSA_ROWS(word) MEDUSA_DOT(word, 0) MEDUSA_DOT(word, 1) MEDUSA_DOT(word, 2)
    asm(MEDUSA_FOUR_WORDS(MEDUSA_ROWS)
        : [s0] "+v"(sums[0]), [s1] "+v"(sums[1]), [s2] "+v"(sums[2])
        : MEDUSA_WORDS);
#undef MEDUSA_ROWS
  } else {
    static_assert(kRows == 4);
#define MEDUSA_ROWS(word) \
  MEDUSA_DOT(word, 0) MEDUSA_DOT(word, 1) MEDUSA_DOT(word, 2) MEDUSA_DOT(word, 3)
    asm(MEDUSA_FOUR_WORDS(MEDUSA_ROWS)
        : [s0] "+v"(sums[0]), [s1] "+v"(sums[1]), [s2] "+v"(sums[2]), [s3] "+v"(sums[3])
        : MEDUSA_WORDS);
#undef MEDUSA_ROWS
  }
#undef MEDUSA_WORDS
#undef MEDUSA_FOUR_WORDS
#undef MEDUSA_DOT
}

/// The GEMM of one format.
template <int kBits, int kBlock, bool kMins>
struct VnniQuantGemm {
  using Layout = QuantTile<kBits, kBlock, kMins>;
  static constexpr int kBlocks = Layout::kBlocks;

  struct Tile {
    __m512i words[8];
    __m512 scales[kBlocks], mins[kBlocks];

    explicit Tile(const uint8_t* from) {
      load_words<kBits>(from + Layout::kHeaderBytes, words);
      for (int b = 0; b < kBlocks; ++b) {
        scales[b] = load_halves(from + b * 32);
        if (kMins) mins[b] = load_halves(from + Layout::kScaleBytes + b * 32);
      }
    }
  };

  /// Adds a tile's part of kRows rows, at most four.
  template <int kRows>
  static void add_tile(const Tile& tile, const RowBlock* rows, __m512* sums) {
#pragma GCC unroll 2
    for (int block = 0; block < kBlocks; ++block) {
      __m512i quants[kRows];
      for (int r = 0; r < kRows; ++r)
        quants[r] =
            kMins ? _mm512_setzero_si512() : _mm512_set1_epi32(Layout::zero_of(rows[r], block));
      const int first = block * (8 / kBlocks);
      add_words<kRows>(tile.words + first, rows->quants + first * 4, quants);
      if (kBlocks == 1) add_words<kRows>(tile.words + 4, rows->quants + 16, quants);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const __m512 scale = _mm512_mul_ps(tile.scales[block], _mm512_set1_ps(rows[r].scale));
        sums[r] = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(quants[r]), sums[r]);
        if (kMins)
          sums[r] = _mm512_fmadd_ps(tile.mins[block],
                                    _mm512_set1_ps(Layout::min_of(rows[r], block)), sums[r]);
      }
    }
  }

  template <int kRows>
  static void multiply(const uint8_t* half, const RowBlock* rows, int64_t depth, int64_t ahead,
                       float* sums) {
    constexpr int kTogether = kRows <= 4 ? kRows : kRows / 2;
    __m512 chains[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) chains[r] = _mm512_setzero_ps();
    for (int64_t d = 0; d < depth; ++d) {
      const uint8_t* from = half + d * Layout::kBytes;
      Layout::prefetch(from, ahead);
      const Tile tile(from);
#pragma GCC unroll 2
      for (int r = 0; r < kRows; r += kTogether)
        add_tile<kTogether>(tile, rows + d * kTileRows + r, chains + r);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) _mm512_store_ps(sums + r * kTileRows, chains[r]);
  }

  static void run(const uint8_t* half, const RowBlock* rows, int64_t depth, int64_t ahead,
                  int64_t num_rows, float* sums) {
    if (num_rows == 1) return multiply<1>(half, rows, depth, ahead, sums);
    if (num_rows == 2) return multiply<2>(half, rows, depth, ahead, sums);
    if (num_rows == 3) return multiply<3>(half, rows, depth, ahead, sums);
    if (num_rows == 4) return multiply<4>(half, rows, depth, ahead, sums);
    if (num_rows <= 6) return multiply<6>(half, rows, depth, ahead, sums);
    return multiply<8>(half, rows, depth, ahead, sums);
  }
};

/// Attention and everything beside the GEMMs is Avx512Kernel's.
struct VnniKernel : Avx512Kernel {
  static constexpr const char* kName = "AVX-512 VNNI, block weights";
  static constexpr int64_t kQuantMr = kMr;
  static int64_t quant_ahead(int64_t /*half_bytes*/) { return 4096; }

  static int32_t store_quants(F32x16 scaled, int8_t* quants) {
    const __m128i rounded = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(scaled));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(quants), rounded);
    return _mm512_reduce_add_epi32(_mm512_cvtepi8_epi32(rounded));
  }

  static QuantGemmFunction quant_gemm(QuantFormat format) {
    return find_quant_gemm<VnniQuantGemm>(format);
  }
};

}  // namespace
}  // namespace medusa

#endif
