// GEMMs with quantized weights against their reference: Linear of the same blocks.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "backbone/cpu/fused_buffers.h"
#include "backbone/cpu/layout/quant_layout.h"
#include "backbone/cpu/layout/tile_weight.h"
#include "backbone/linear.h"
#include "tests/backbone/cpu_isas.h"
#include "tests/backbone/normal_tensor.h"
#include "tests/backbone/quantized_weights.h"

namespace medusa {
namespace {

using fixtures::normal;

std::string kernels_name(const testing::TestParamInfo<const CpuKernels*>& each) {
  std::string name;
  for (const char* c = each.param->name; *c != '\0'; ++c)
    if (std::isalnum(static_cast<unsigned char>(*c)) != 0) name += *c;
  return name;
}

class QuantKernels : public testing::TestWithParam<const CpuKernels*> {
 protected:
  static at::Tensor multiply(const at::Tensor& x, const QuantizedMatrix& matrix) {
    return multiply(*GetParam(), x, matrix);
  }

  /// @param x  [M, k] float32, bfloat16 elements.
  static at::Tensor multiply(const CpuKernels& kernels, const at::Tensor& x,
                             const QuantizedMatrix& matrix) {
    const int64_t m = x.size(0), k = x.size(1), depth = ceil_div(k, kTileDepth);
    const at::Tensor bits = x.to(at::kBFloat16).contiguous();
    GrowingBuffer tiled, blocks;
    tiled.reserve(tiled_rows_size(m, k) * kernels.element_bytes);
    blocks.reserve(row_blocks_size(m, depth));
    kernels.pack_rows(static_cast<const uint16_t*>(bits.const_data_ptr()), m, k, tiled.data());
    kernels.quantize(tiled.data(), depth, {0, m * depth}, blocks.data());
    const TileWeight weight(matrix);
    at::Tensor y = at::full({m, matrix.num_outputs()}, 1e9F);
    const KernelRegion region(kernels);
    kernels.gemm(weight.view(), blocks.data(), m, {0, weight.view().num_pairs()},
                 y.data_ptr<float>(), y.size(1));
    return y;
  }

  static at::Tensor rows(int64_t m, int64_t k, uint64_t seed) {
    return normal({m, k}, seed).to(at::kBFloat16).to(at::kFloat);
  }
};

INSTANTIATE_TEST_SUITE_P(Isas, QuantKernels, testing::ValuesIn(runnable_quant_kernels()),
                         kernels_name);

TEST_P(QuantKernels, GemmEqualsTheReferenceForAnyFormatAndSize) {
  for (const QuantFormat format : kQuantFormats)
    for (const int64_t n : {1, 16, 33, 130})
      for (const int64_t k : {32, 100, 576}) {
        const QuantizedMatrix matrix = in_format(normal({n, k}, 1), format);
        for (const int64_t m : {1, 2, 3, 4, 5, 8, 9, 16, 70}) {
          const at::Tensor x = rows(m, k, 2);
          const at::Tensor expected = Linear(matrix, Kernels::Reference)(x);
          const float error = (multiply(x, matrix) - expected).abs().max().item<float>();
          EXPECT_LT(error, 1e-5F * static_cast<float>(k))
              << format.bits << " bits, blocks of " << format.block << ", offsets "
              << format.has_mins << ": " << n << " " << k << " " << m;
        }
      }
}

TEST_P(QuantKernels, ARowOfAGemmIsTheSameBitsAmongAnyOthers) {
  for (const QuantFormat format : kQuantFormats) {
    const QuantizedMatrix matrix = in_format(normal({70, 200}, 3), format);
    const at::Tensor x = rows(150, 200, 4);
    const at::Tensor all = multiply(x, matrix);
    for (const int64_t m : {1, 2, 3, 5, 8, 13, 16, 31, 65})
      for (const int64_t first : {0, 1, 7, 80})
        EXPECT_TRUE(at::equal(multiply(x.narrow(0, first, m), matrix), all.narrow(0, first, m)))
            << format.bits << " " << format.block << " " << m << " " << first;
  }
}

TEST_P(QuantKernels, RowsOfZerosAndOfOneLargeNumberAreExact) {
  const QuantizedMatrix matrix = quantize_matrix(normal({32, 64}, 5));
  at::Tensor x = at::zeros({2, 64}, at::kFloat);
  x[1][40] = 1024.0F;
  const at::Tensor y = multiply(x, matrix);
  EXPECT_TRUE(at::equal(y[0], at::zeros({32})));
  const at::Tensor expected = 1024 * dequantize_matrix(matrix).select(1, 40);
  EXPECT_TRUE(at::allclose(y[1], expected, 1e-5, 1e-4));
}

TEST_P(QuantKernels, BlocksOfRowsAreTakenAsZerosWhereNoScaleIsLeft) {
  const QuantizedMatrix matrix = quantize_matrix(normal({32, 64}, 5));
  for (const double tiny : {1e-45, 1e-38, 3e-37}) {
    at::Tensor x = at::full({9, 64}, tiny, at::kFloat);
    x.narrow(1, 32, 32).fill_(2);
    at::Tensor without = x.clone();
    without.narrow(1, 0, 32).zero_();
    EXPECT_TRUE(at::equal(multiply(x, matrix), multiply(without, matrix))) << tiny;
    EXPECT_TRUE(at::equal(Linear(matrix, Kernels::Reference)(x),
                          Linear(matrix, Kernels::Reference)(without)));
  }
}

TEST_P(QuantKernels, TheLargestQuantsDoNotOverflow) {
  for (const QuantFormat format : kQuantFormats) {
    QuantizedMatrix matrix = in_format(normal({32, 64}, 6), format);
    for (const int64_t quant :
         {int64_t{0}, int64_t{1} << (format.bits - 1), (int64_t{1} << format.bits) - 1}) {
      matrix.quants.fill_(quant);
      at::Tensor x = at::ones({3, 64});  // quants of 127, -127 and both by turns
      x[1].fill_(-1);
      x[2].view({-1, 2}).select(1, 0).fill_(-1);
      const at::Tensor expected = Linear(matrix, Kernels::Reference)(x);
      EXPECT_TRUE(at::allclose(multiply(x, matrix), expected, 1e-5, 1e-3))
          << format.bits << " " << format.block << " " << format.has_mins << " " << quant;
    }
  }
}

TEST_P(QuantKernels, AnyNumberOfRowsGivesTheSameBitsOnEveryIsa) {
  // Plain C++ rounds products by themselves: its bits are its own.
  const bool alone = GetParam() == portable_quant_kernels() || avx2_quant_kernels() == nullptr;
  const auto& reference = alone ? *GetParam() : *avx2_quant_kernels();
  for (const QuantFormat format : kQuantFormats)
    for (const int64_t k : {32, 64, 100, 288}) {  // 1, 2, 4 and 9 tiles
      const QuantizedMatrix matrix = in_format(normal({40, k}, 9), format);
      const at::Tensor x = rows(64, k, 10);
      const at::Tensor all = multiply(reference, x, matrix);
      for (int64_t m = 1; m <= 64; ++m)
        EXPECT_TRUE(at::equal(multiply(x.narrow(0, 0, m), matrix), all.narrow(0, 0, m)))
            << format.bits << " " << format.block << " " << format.has_mins << " " << k << " " << m;
    }
}

TEST_P(QuantKernels, OneIsaGivesTheNumbersOfAnother) {
  for (const QuantFormat format : kQuantFormats) {
    const QuantizedMatrix matrix = in_format(normal({48, 160}, 7), format);
    const at::Tensor x = rows(11, 160, 8);
    const at::Tensor plain = multiply(*portable_quant_kernels(), x, matrix),
                     y = multiply(x, matrix);
    EXPECT_TRUE(at::allclose(y, plain, 1e-5, 1e-4));
    if (GetParam() == portable_quant_kernels() || avx2_quant_kernels() == nullptr) continue;
    EXPECT_TRUE(at::equal(y, multiply(*avx2_quant_kernels(), x, matrix)));
  }
}

}  // namespace
}  // namespace medusa
