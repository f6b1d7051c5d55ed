// Products with block weights without AVX512-VNNI: with AVX2, or in plain C++ for any processor.
// For kernel files only (lanes.h).
#pragma once

#if !defined(__AVX512BW__)

#include "backbone/cpu/block_loop.h"
#include "backbone/cpu/part_engine.h"

namespace medusa {
namespace {

/// float32 of the halves of a part, finite ones: the exponent's bias is made up by a product.
inline Part widen_halves(const uint8_t* from) {
  const WordPart bits = __builtin_convertvector(load_part<HalfPart>(from), WordPart);
  const Part magnitude = bits_as<Part>((bits & 0x7FFF) << 13) * 0x1p112F;
  return bits_as<Part>(bits_as<WordPart>(magnitude) | (bits & 0x8000) << 16);
}
inline Floats load_halves(const uint8_t* from) {
  return make_floats([&](int i) { return widen_halves(from + i * kPartLanes * 2); });
}

#if defined(__AVX2__) && defined(__FMA__)

constexpr int kRowsTogether = 4;

inline __m256i four_levels(const RowBlock& row, int word) {
  return _mm256_set1_epi32(load_part<int32_t>(row.levels + word * 4));
}

/// whole[r] = levels · the levels of row r over the words [first, first + count), exactly.
/// VPMADDUBSW adds neighbouring products in 16 bits, which with levels of 4 bits has room for all
/// eight words of a block (8 · 2 · 15 · 127 < 2^15); a level of 8 bits is two of 4.
template <int kBits, int kRows>
inline void sum_levels(const uint8_t* levels, const RowBlock* rows, int first, int count,
                       Floats (&whole)[kRows]) {
  constexpr int kLoadWords = kBits == 4 ? 2 : 1;  // in a part's 32 bytes
  const __m256i mask = _mm256_set1_epi8(15);
#pragma GCC unroll 2
  for (int i = 0; i < kParts; ++i) {
    __m256i low[kRows] = {}, high[kRows] = {};
    for (int word = first; word < first + count; word += kLoadWords) {
      const auto both = load_part<__m256i>(levels + word / kLoadWords * 64 + i * kPartBytes);
      const __m256i lower = _mm256_and_si256(both, mask);
      const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(both, 4), mask);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const __m256i x = four_levels(rows[r], word);
        const __m256i y = kBits == 4 ? four_levels(rows[r], word + 1) : x;
        low[r] = _mm256_add_epi16(low[r], _mm256_maddubs_epi16(lower, x));
        __m256i& other = kBits == 4 ? low[r] : high[r];
        other = _mm256_add_epi16(other, _mm256_maddubs_epi16(upper, y));
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      __m256i sums = _mm256_madd_epi16(low[r], _mm256_set1_epi16(1));
      if (kBits == 8)
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(high[r], _mm256_set1_epi16(16)));
      whole[r].parts[i] = _mm256_cvtepi32_ps(sums);
    }
  }
}

#else

constexpr int kRowsTogether = 1;

using ShortPart = int16_t __attribute__((vector_size(kPartBytes)));

/// Two levels of a row in each 32 bits.
inline ShortPart pair_of_levels(const int8_t* levels, int first, int second) {
  const auto pair = static_cast<int32_t>(static_cast<uint16_t>(levels[first]) |
                                         static_cast<uint32_t>(levels[second]) << 16);
  return bits_as<ShortPart>(IntPart{pair, pair, pair, pair});
}

inline IntPart sum_of_pairs(ShortPart pairs) {
  const auto both = bits_as<IntPart>(pairs);
  return (both << 16 >> 16) + (both >> 16);
}

/// The same in products of 16 bits, with room for the sums of a block as above.
template <int kBits, int kRows>
inline void sum_levels(const uint8_t* levels, const RowBlock* rows, int first, int count,
                       Floats (&whole)[kRows]) {
  static_assert(kRows == 1);
  constexpr int kLoadWords = kBits == 4 ? 2 : 1;
  using Bits = uint16_t __attribute__((vector_size(kPartBytes)));
  ShortPart low[kParts] = {}, high[kParts] = {};
  for (int word = first; word < first + count; word += kLoadWords) {
    const int8_t *x = rows->levels + word * 4, *y = kBits == 4 ? x + 4 : x;
    const ShortPart x_even = pair_of_levels(x, 0, 2), x_odd = pair_of_levels(x, 1, 3);
    const ShortPart y_even = pair_of_levels(y, 0, 2), y_odd = pair_of_levels(y, 1, 3);
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) {
      const auto bits = load_part<Bits>(levels + word / kLoadWords * 64 + i * kPartBytes);
      low[i] += bits_as<ShortPart>(bits & 15) * x_even;
      low[i] += bits_as<ShortPart>(bits >> 8 & 15) * x_odd;
      ShortPart& other = kBits == 4 ? low[i] : high[i];
      other += bits_as<ShortPart>(bits >> 4 & 15) * y_even;
      other += bits_as<ShortPart>(bits >> 12) * y_odd;
    }
  }
  for (int i = 0; i < kParts; ++i) {
    IntPart sums = sum_of_pairs(low[i]);
    if (kBits == 8) sums += sum_of_pairs(high[i]) * 16;
    whole[0].parts[i] = __builtin_convertvector(sums, Part);
  }
}

#endif

/// One format's products.
template <int kBits, int kBlock, bool kOffsets>
struct PartBlockProduct {
  using Layout = BlockTile<kBits, kBlock, kOffsets>;

  template <int kRows>
  static void add_tile(const uint8_t* from, const RowBlock* rows, Floats (&sums)[kRows]) {
    for (int block = 0; block < Layout::kBlocks; ++block) {
      constexpr int kWords = 8 / Layout::kBlocks;
      Floats whole[kRows];
      sum_levels<kBits>(from + Layout::kHeaderBytes, rows, block * kWords, kWords, whole);
      const Floats scales = load_halves(from + block * 32);
      for (int r = 0; r < kRows; ++r) {
        if (!kOffsets)
          whole[r] = whole[r] + all_lanes(static_cast<float>(Layout::zero_of(rows[r], block)));
        sums[r] = multiply_add(scales * all_lanes(rows[r].scale), whole[r], sums[r]);
        if (kOffsets)
          sums[r] = multiply_add(load_halves(from + Layout::kScaleBytes + block * 32),
                                 all_lanes(Layout::offset_of(rows[r], block)), sums[r]);
      }
    }
  }

  template <int kRows>
  static void multiply(const uint8_t* half, const RowBlock* rows, int64_t depth, int64_t ahead,
                       float* to) {
    Floats sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = all_lanes(0);
    for (int64_t d = 0; d < depth; ++d) {
      const uint8_t* from = half + d * Layout::kBytes;
      Layout::prefetch(from, ahead);
      add_tile<kRows>(from, rows + d * kTileRows, sums);
    }
    for (int r = 0; r < kRows; ++r) store_floats(to + r * kTileRows, sums[r]);
  }

  static void run(const uint8_t* half, const RowBlock* rows, int64_t depth, int64_t ahead,
                  int64_t num_rows, float* sums) {
    if (num_rows == 1) return multiply<1>(half, rows, depth, ahead, sums);
    if constexpr (kRowsTogether == 4) {
      if (num_rows == 2) return multiply<2>(half, rows, depth, ahead, sums);
      if (num_rows == 3) return multiply<3>(half, rows, depth, ahead, sums);
      return multiply<4>(half, rows, depth, ahead, sums);
    }
  }
};

/// Attention and everything beside the products is PartEngine's.
struct PartBlockEngine : PartEngine {
  static constexpr const char* kName =
      kParts == 2 ? "AVX2, block weights" : "plain C++, block weights";
  static constexpr int64_t kBlockPassRows = kRowsTogether;

  static int32_t store_levels(const Floats& scaled, int8_t* levels) {
    const Floats shift = all_lanes(kRounding);
    float rounded[kLanes];
    store_floats(rounded, scaled + shift - shift);
    int32_t sum = 0;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      levels[lane] = static_cast<int8_t>(rounded[lane]);
      sum += levels[lane];
    }
    return sum;
  }

  static BlockProductFunction block_product(BlockFormat format) {
    return find_block_product<PartBlockProduct>(format);
  }
};

}  // namespace
}  // namespace medusa

#endif
