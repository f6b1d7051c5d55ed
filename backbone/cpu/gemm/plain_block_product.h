// One format's products with block weights in plain C++, for any processor. For kernel files only
// (lanes.h).
#pragma once

#if !defined(__AVX2__) || !defined(__FMA__)

#include "backbone/cpu/gemm/block_loop.h"

namespace medusa {
namespace {

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

/// Sixteen numbers of at most 127 as whole ones, ties to even. @returns their sum.
inline int32_t store_rounded(const Floats& x, int8_t* to) {
  const Floats shift = all_lanes(kRounding);
  float rounded[kLanes];
  store_floats(rounded, x + shift - shift);
  int32_t sum = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    to[lane] = static_cast<int8_t>(rounded[lane]);
    sum += to[lane];
  }
  return sum;
}

/// One row at a time, in products of 16 bits. With levels of 4 bits the sums of a block have room
/// in them (8 · 2 · 15 · 127 < 2^15); a level of 8 bits is two of 4.
template <int kBits, int kBlock, bool kOffsets>
struct PlainBlockProduct {
  static constexpr int64_t kPassRows = 1;
  static int64_t ahead(int64_t /*half_bytes*/) { return 4096; }

  static void run(const uint8_t* half, const RowBlock* rows, int64_t depth, int64_t ahead,
                  int64_t /*num_rows*/, float* to) {
    Floats sums = all_lanes(0);
    for (int64_t d = 0; d < depth; ++d) {
      const uint8_t* from = half + d * Layout::kBytes;
      Layout::prefetch(from, ahead);
      for (int block = 0; block < Layout::kBlocks; ++block)
        sums = add_block(from, block, rows[d * kTileRows], sums);
    }
    store_floats(to, sums);
  }

 private:
  using Layout = BlockTile<kBits, kBlock, kOffsets>;
  static constexpr int kLoadWords = kBits == 4 ? 2 : 1;  // in 64 bytes

  static Floats add_block(const uint8_t* from, int block, const RowBlock& row, Floats sums) {
    Floats whole = sum_levels(from + Layout::kHeaderBytes, block, row);
    if (!kOffsets) whole = whole + all_lanes(static_cast<float>(Layout::zero_of(row, block)));
    sums = multiply_add(load_halves(from + block * 32) * all_lanes(row.scale), whole, sums);
    if (!kOffsets) return sums;
    return multiply_add(load_halves(from + Layout::kScaleBytes + block * 32),
                        all_lanes(Layout::offset_of(row, block)), sums);
  }

  /// levels · the levels of the row over a block, exactly.
  static Floats sum_levels(const uint8_t* levels, int block, const RowBlock& row) {
    constexpr int kWords = 8 / Layout::kBlocks;
    using Bits = uint16_t __attribute__((vector_size(kPartBytes)));
    ShortPart low[kParts] = {}, high[kParts] = {};
    for (int word = block * kWords; word < (block + 1) * kWords; word += kLoadWords) {
      const int8_t *x = row.levels + word * 4, *y = kBits == 4 ? x + 4 : x;
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
    return make_floats([&](int i) {
      IntPart sums = sum_of_pairs(low[i]);
      if (kBits == 8) sums += sum_of_pairs(high[i]) * 16;
      return __builtin_convertvector(sums, Part);
    });
  }
};

}  // namespace
}  // namespace medusa

#endif
