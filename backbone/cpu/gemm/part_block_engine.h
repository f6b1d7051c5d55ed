// Products with block weights without AVX512-VNNI: with AVX2, or in plain C++ for any processor.
// For kernel files only (lanes.h).
#pragma once

#if !defined(__AVX512BW__)

#include "backbone/cpu/gemm/avx2_block_product.h"
#include "backbone/cpu/gemm/part_engine.h"
#include "backbone/cpu/gemm/plain_block_product.h"

namespace medusa {
namespace {

/// One format's products.
#if defined(__AVX2__) && defined(__FMA__)
template <int kBits, int kBlock, bool kOffsets>
using PartBlockProduct = Avx2BlockProduct<kBits, kBlock, kOffsets>;
#else
template <int kBits, int kBlock, bool kOffsets>
using PartBlockProduct = PlainBlockProduct<kBits, kBlock, kOffsets>;
#endif

/// Attention and everything beside the products is PartEngine's.
struct PartBlockEngine : PartEngine {
  static constexpr const char* kName =
      kParts == 2 ? "AVX2, block weights" : "plain C++, block weights";
  static constexpr int64_t kBlockPassRows = PartBlockProduct<4, 32, false>::kPassRows;
  static int64_t block_ahead(int64_t half_bytes) {
    return PartBlockProduct<4, 32, false>::ahead(half_bytes);
  }

  static int32_t store_levels(const Floats& scaled, int8_t* levels) {
    return store_rounded(scaled, levels);
  }

  static BlockProductFunction block_product(BlockFormat format) {
    return find_block_product<PartBlockProduct>(format);
  }
};

}  // namespace
}  // namespace medusa

#endif
