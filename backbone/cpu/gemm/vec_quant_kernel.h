// GEMMs with quantized weights without AVX512-VNNI: with AVX2, or in plain C++ for any processor.
// For kernel files only (simd.h).
#pragma once

#if !defined(__AVX512BW__)

#include "backbone/cpu/gemm/avx2_quant_gemm.h"
#include "backbone/cpu/gemm/portable_quant_gemm.h"
#include "backbone/cpu/gemm/vec_kernel.h"

namespace medusa {
namespace {

/// The GEMM of one format.
#if defined(__AVX2__) && defined(__FMA__)
template <int kBits, int kBlock, bool kMins>
using VecQuantGemm = Avx2QuantGemm<kBits, kBlock, kMins>;
#else
template <int kBits, int kBlock, bool kMins>
using VecQuantGemm = PortableQuantGemm<kBits, kBlock, kMins>;
#endif

/// Attention and everything beside the GEMMs is VecKernel's.
struct VecQuantKernel : VecKernel {
  static constexpr const char* kName =
      kVecs == 2 ? "AVX2, block weights" : "plain C++, block weights";
  static constexpr int64_t kQuantMr = VecQuantGemm<4, 32, false>::kMr;
  static int64_t quant_ahead(int64_t half_bytes) {
    return VecQuantGemm<4, 32, false>::ahead(half_bytes);
  }

  static int32_t store_quants(const F32x16& scaled, int8_t* quants) {
    return store_rounded(scaled, quants);
  }

  static QuantGemmFunction quant_gemm(QuantFormat format) {
    return find_quant_gemm<VecQuantGemm>(format);
  }
};

}  // namespace
}  // namespace medusa

#endif
