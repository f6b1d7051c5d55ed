// Sixteen floats at a time: for the kernel files only (*_kernels.cpp), each of which is compiled
// for one kind of processor and runs behind a test for it (cpu_features.h). Everything here and in
// the loops and kernels beside it has internal linkage, so that no other file's code is ever
// replaced by a copy compiled for those instructions; for the same reason they include no templates
// of the standard library.
//
// The loops are written once, over what avx512.h and gcc_vectors.h both have:
//
//   F32x16                              sixteen float32, with + - * /
//   load_f32, store_f32           from and to any address
//   load_first, store_first             the first `count` of them: all from 16 on, none below 1
//   splat                           the same number sixteen times
//   multiply_add, multiply_subtract     a * b + c and a * b - c, rounded once where the machine can
//   larger, largest_of, sum_of          of two, and of sixteen lanes
//   load_bf16, store_bf16               bfloat16 bits; rounded to the nearest, ties to even
//   store_halves                        every second of 32 bfloat16 elements, from the first or the
//                                       second on, and the others stay
//   scatter_words                       two neighboring elements of `low` are a word, its eight
//                                       words lie 16 words apart, those of `high` start `half`
//                                       words further
//   Words, upcast_words, half_words,     sixteen 32-bit words: of 16-bit numbers, of the lower or
//   store_words                         upper halves of words, and back to words of two halves
//   exp2_of                             2^x for x <= 127
//
// Both round alike wherever there is a fused multiply-add, so AVX2 gives the bits of AVX-512.
#pragma once

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include "backbone/cpu/simd/avx512.h"
#else
#include "backbone/cpu/simd/gcc_vectors.h"
#endif

namespace medusa {
namespace {

/// x / (1 + e^-x)
inline F32x16 silu(const F32x16& x) {
  const F32x16 bounded = larger(x, splat(-80.0F));  // keeps e^-x finite
  const F32x16 e = exp2_of(bounded * splat(-kLog2E));
  return x / (splat(1.0F) + e);
}

}  // namespace
}  // namespace medusa
