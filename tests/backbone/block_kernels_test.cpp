// Products with block weights against their slow twin: Linear of the same blocks.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "backbone/cpu/block_layout.h"
#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cpu/fused_buffers.h"
#include "backbone/cpu/tile_weight.h"
#include "backbone/linear.h"
#include "tests/backbone/block_weights.h"
#include "tests/backbone/normal_tensor.h"

namespace medusa {
namespace {

using fixtures::normal;

class BlockKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (vnni_kernels() == nullptr) GTEST_SKIP() << "no AVX512-VNNI";
  }

  /// @param x  [M, k] float32, bfloat16 numbers.
  static at::Tensor multiply(const at::Tensor& x, const BlockMatrix& matrix) {
    const CpuKernels& kernels = *vnni_kernels();
    const int64_t m = x.size(0), k = x.size(1), depth = ceil_div(k, kTileDepth);
    const at::Tensor bits = x.to(at::kBFloat16).contiguous();
    GrowingBuffer tiled, blocks;
    tiled.reserve(tiled_rows_size(m, k) * kernels.number_bytes);
    blocks.reserve(row_blocks_size(m, depth));
    kernels.tile(static_cast<const uint16_t*>(bits.const_data_ptr()), m, k, tiled.data());
    kernels.quantise(tiled.data(), depth, {0, m * depth}, blocks.data());
    const TileWeight weight(matrix);
    at::Tensor y = at::full({m, matrix.num_outputs()}, 1e9F);
    kernels.product(weight.view(), blocks.data(), m, {0, weight.view().num_pairs()},
                    y.data_ptr<float>(), y.size(1));
    return y;
  }

  static at::Tensor rows(int64_t m, int64_t k, uint64_t seed) {
    return normal({m, k}, seed).to(at::kBFloat16).to(at::kFloat);
  }
};

TEST_F(BlockKernels, ProductEqualsTheSlowTwinForAnyFormatAndSize) {
  for (const BlockFormat format : kBlockFormats)
    for (const int64_t n : {1, 16, 33, 130})
      for (const int64_t k : {32, 100, 576}) {
        const BlockMatrix matrix = in_format(normal({n, k}, 1), format);
        for (const int64_t m : {1, 2, 3, 4, 5, 8, 9, 16, 70}) {
          const at::Tensor x = rows(m, k, 2);
          const at::Tensor expected = Linear(matrix)(x);
          const float error = (multiply(x, matrix) - expected).abs().max().item<float>();
          EXPECT_LT(error, 1e-5F * static_cast<float>(k))
              << format.bits << " bits, blocks of " << format.block << ", offsets "
              << format.has_offsets << ": " << n << " " << k << " " << m;
        }
      }
}

TEST_F(BlockKernels, ARowOfAProductIsTheSameBitsAmongAnyOthers) {
  for (const BlockFormat format : kBlockFormats) {
    const BlockMatrix matrix = in_format(normal({70, 200}, 3), format);
    const at::Tensor x = rows(150, 200, 4);
    const at::Tensor all = multiply(x, matrix);
    for (const int64_t m : {1, 2, 3, 5, 8, 13, 16, 31, 65})
      for (const int64_t first : {0, 1, 7, 80})
        EXPECT_TRUE(at::equal(multiply(x.narrow(0, first, m), matrix), all.narrow(0, first, m)))
            << format.bits << " " << format.block << " " << m << " " << first;
  }
}

TEST_F(BlockKernels, RowsOfZerosAndOfOneLargeNumberAreExact) {
  const BlockMatrix matrix = quantise_blocks(normal({32, 64}, 5));
  at::Tensor x = at::zeros({2, 64}, at::kFloat);
  x[1][40] = 1024.0F;
  const at::Tensor y = multiply(x, matrix);
  EXPECT_TRUE(at::equal(y[0], at::zeros({32})));
  const at::Tensor expected = 1024 * dequantise_blocks(matrix).select(1, 40);
  EXPECT_TRUE(at::allclose(y[1], expected, 1e-5, 1e-4));
}

}  // namespace
}  // namespace medusa
