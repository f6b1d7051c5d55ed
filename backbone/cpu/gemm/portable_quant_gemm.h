// The GEMM with quantized weights of one format in plain C++, for any processor. For kernel files
// only (simd.h).
#pragma once

#if !defined(__AVX2__) || !defined(__FMA__)

#include "backbone/cpu/gemm/quant_gemm_loop.h"

namespace medusa {
namespace {

using I16Vec = int16_t __attribute__((vector_size(kVecBytes)));

/// Two quants of a row in each 32 bits.
inline I16Vec pair_of_quants(const int8_t* quants, int first, int second) {
  const auto pair = static_cast<int32_t>(static_cast<uint16_t>(quants[first]) |
                                         static_cast<uint32_t>(quants[second]) << 16);
  return bits_as<I16Vec>(I32Vec{pair, pair, pair, pair});
}

inline I32Vec sum_of_pairs(I16Vec pairs) {
  const auto both = bits_as<I32Vec>(pairs);
  return (both << 16 >> 16) + (both >> 16);
}

/// Sixteen numbers of at most 127 as whole ones, ties to even. @returns their sum.
inline int32_t store_rounded(const F32x16& x, int8_t* to) {
  const F32x16 shift = splat(kRounding);
  float rounded[kLanes];
  store_f32(rounded, x + shift - shift);
  int32_t sum = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    to[lane] = static_cast<int8_t>(rounded[lane]);
    sum += to[lane];
  }
  return sum;
}

/// One row at a time, in products of 16 bits. With quants of 4 bits the sums of a block have room
/// in them (8 · 2 · 15 · 127 < 2^15); a quant of 8 bits is two of 4.
template <int kBits, int kBlock, bool kMins>
struct PortableQuantGemm {
  static constexpr int64_t kMr = 1;
  static int64_t ahead(int64_t /*half_bytes*/) { return 4096; }

  static void run(const uint8_t* half, const RowBlock* rows, int64_t depth, int64_t ahead,
                  int64_t /*num_rows*/, float* to) {
    F32x16 sums = splat(0);
    for (int64_t d = 0; d < depth; ++d) {
      const uint8_t* from = half + d * Layout::kBytes;
      Layout::prefetch(from, ahead);
      for (int block = 0; block < Layout::kBlocks; ++block)
        sums = add_block(from, block, rows[d * kTileRows], sums);
    }
    store_f32(to, sums);
  }

 private:
  using Layout = QuantTile<kBits, kBlock, kMins>;
  static constexpr int kLoadWords = kBits == 4 ? 2 : 1;  // in 64 bytes

  static F32x16 add_block(const uint8_t* from, int block, const RowBlock& row, F32x16 sums) {
    F32x16 whole = sum_quants(from + Layout::kHeaderBytes, block, row);
    if (!kMins) whole = whole + splat(static_cast<float>(Layout::zero_of(row, block)));
    sums = multiply_add(load_halves(from + block * 32) * splat(row.scale), whole, sums);
    if (!kMins) return sums;
    return multiply_add(load_halves(from + Layout::kScaleBytes + block * 32),
                        splat(Layout::min_of(row, block)), sums);
  }

  /// quants · the quants of the row over a block, exactly.
  static F32x16 sum_quants(const uint8_t* quants, int block, const RowBlock& row) {
    constexpr int kWords = 8 / Layout::kBlocks;
    using Bits = uint16_t __attribute__((vector_size(kVecBytes)));
    I16Vec low[kVecs] = {}, high[kVecs] = {};
    for (int word = block * kWords; word < (block + 1) * kWords; word += kLoadWords) {
      const int8_t *x = row.quants + word * 4, *y = kBits == 4 ? x + 4 : x;
      const I16Vec x_even = pair_of_quants(x, 0, 2), x_odd = pair_of_quants(x, 1, 3);
      const I16Vec y_even = pair_of_quants(y, 0, 2), y_odd = pair_of_quants(y, 1, 3);
#pragma GCC unroll 4
      for (int i = 0; i < kVecs; ++i) {
        const auto bits = load_vec<Bits>(quants + word / kLoadWords * 64 + i * kVecBytes);
        low[i] += bits_as<I16Vec>(bits & 15) * x_even;
        low[i] += bits_as<I16Vec>(bits >> 8 & 15) * x_odd;
        I16Vec& other = kBits == 4 ? low[i] : high[i];
        other += bits_as<I16Vec>(bits >> 4 & 15) * y_even;
        other += bits_as<I16Vec>(bits >> 12) * y_odd;
      }
    }
    return make_f32x16([&](int i) {
      I32Vec sums = sum_of_pairs(low[i]);
      if (kBits == 8) sums += sum_of_pairs(high[i]) * 16;
      return __builtin_convertvector(sums, Vec);
    });
  }
};

}  // namespace
}  // namespace medusa

#endif
