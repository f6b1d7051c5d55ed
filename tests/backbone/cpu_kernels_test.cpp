#include "backbone/cpu/cpu_kernels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "backbone/cpu/fused_buffers.h"
#include "backbone/cpu/layout/tile_weight.h"
#include "tests/backbone/cpu_isas.h"
#include "tests/backbone/normal_tensor.h"

namespace medusa {
namespace {

using fixtures::normal;
const uint16_t* bits(const at::Tensor& x) {
  return static_cast<const uint16_t*>(x.const_data_ptr());
}

/// Rows of x in tile order.
class TiledRows {
 public:
  TiledRows(const CpuKernels& kernels, int64_t num_rows, int64_t k) : kernels_(kernels), k_(k) {
    memory_.reserve(tiled_rows_size(num_rows, k) * kernels.element_bytes);
  }
  TiledRows(const CpuKernels& kernels, const at::Tensor& x)
      : TiledRows(kernels, x.size(0), x.size(1)) {
    kernels.pack_rows(bits(x), x.size(0), k_, memory_.data());
  }
  void* data() const { return memory_.data(); }
  float at(int64_t row, int64_t column) const {
    const int64_t i = tiled_index(row, column, ceil_div(k_, kTileDepth));
    if (kernels_.element_bytes == 4) return memory_.data<float>()[i];
    return static_cast<float>(memory_.data<at::BFloat16>()[i]);
  }

 private:
  const CpuKernels& kernels_;
  int64_t k_;
  GrowingBuffer memory_;
};

/// The GEMM of bfloat16 x [M, k] and weight [n, k], as the kernels compute it.
at::Tensor multiply(const CpuKernels& kernels, const at::Tensor& x, const TileWeight& weight) {
  const TiledRows rows(kernels, x);
  at::Tensor y = at::full({x.size(0), weight.num_outputs()}, 1e9F);
  const KernelRegion region(kernels);
  kernels.gemm(weight.view(), rows.data(), x.size(0), {0, weight.view().num_pairs()},
               static_cast<float*>(y.data_ptr()), y.size(1));
  return y;
}

TEST(CpuKernelsTest, GemmEqualsTheExactOneForAnySizes) {
  for (const CpuKernels* kernels : runnable_kernels())
    for (const int64_t n : {1, 16, 33, 130})
      for (const int64_t k : {1, 31, 32, 100}) {
        const at::Tensor weight = normal({n, k}, 1).to(at::kBFloat16);
        for (const int64_t m : {1, 3, 8, 9, 16, 17, 70}) {
          const at::Tensor x = normal({m, k}, 2).to(at::kBFloat16);
          const at::Tensor exact = at::matmul(x.to(at::kDouble), weight.to(at::kDouble).t());
          const at::Tensor y = multiply(*kernels, x, TileWeight(weight));
          EXPECT_LT((y.to(at::kDouble) - exact).abs().max().item<double>(), 1e-4)
              << kernels->name << " " << n << " " << k << " " << m;
        }
      }
}

TEST(CpuKernelsTest, ARowOfAGemmIsTheSameBitsAmongAnyOthers) {
  for (const CpuKernels* kernels : runnable_kernels()) {
    const TileWeight weight(normal({70, 200}, 3));
    const at::Tensor x = normal({600, 200}, 4).to(at::kBFloat16);
    const at::Tensor all = multiply(*kernels, x, weight);
    for (const int64_t m : {1, 2, 5, 8, 13, 16, 31, 65})
      for (const int64_t first : {0, 1, 7, 90})
        EXPECT_TRUE(
            at::equal(multiply(*kernels, x.narrow(0, first, m), weight), all.narrow(0, first, m)))
            << kernels->name << " " << m << " " << first;
  }
}

TEST(CpuKernelsTest, GemmAddAddsInsideItsPairsOnly) {
  for (const CpuKernels* kernels : runnable_kernels()) {
    const TileWeight weight(normal({80, 64}, 5));
    const at::Tensor x = normal({5, 64}, 6).to(at::kBFloat16);
    const at::Tensor before = normal({5, 80}, 7);
    at::Tensor y = before.clone();
    const TiledRows rows(*kernels, x);
    const KernelRegion region(*kernels);
    kernels->gemm_add(weight.view(), rows.data(), 5, {1, 3}, static_cast<float*>(y.data_ptr()), 80);
    const at::Tensor gemm = multiply(*kernels, x, weight);
    EXPECT_TRUE(at::equal(y.narrow(1, 0, 32), before.narrow(1, 0, 32))) << kernels->name;
    EXPECT_TRUE(at::equal(y.narrow(1, 32, 48), (before + gemm).narrow(1, 32, 48)));
  }
}

TEST(CpuKernelsTest, SwigluMultipliesTheRightGateAndUp) {
  for (const CpuKernels* kernels : runnable_kernels()) {
    constexpr int64_t kMlp = 40;  // the last block of 16 is cut
    const at::Tensor gate_up = normal({2 * kMlp, 64}, 8).to(at::kBFloat16);
    const TileWeight weight(gate_up, gate_up_order(kMlp));
    const at::Tensor x = normal({19, 64}, 9).to(at::kBFloat16);
    const TiledRows rows(*kernels, x), out(*kernels, 19, kMlp);
    {
      const KernelRegion region(*kernels);
      kernels->gemm_swiglu(weight.view(), rows.data(), 19, {0, weight.view().num_pairs()},
                           out.data(), 2);
    }
    const at::Tensor y = at::matmul(x.to(at::kFloat), gate_up.to(at::kFloat).t());
    const at::Tensor expected = at::silu(y.narrow(1, 0, kMlp)) * y.narrow(1, kMlp, kMlp);
    for (int64_t row = 0; row < 19; ++row)
      for (int64_t column = 0; column < 64; ++column) {
        const float wanted = column < kMlp ? expected[row][column].item<float>() : 0.0F;
        ASSERT_NEAR(out.at(row, column), wanted, 1e-4F + 0.004F * std::abs(wanted))
            << kernels->name << " " << row << " " << column;
      }
  }
}

TEST(CpuKernelsTest, NormEqualsItsFormula) {
  for (const CpuKernels* kernels : runnable_kernels()) {
    const at::Tensor x = 3 * normal({18, 96}, 10), weight = normal({96}, 11);
    const at::Tensor expected =
        x * ((x * x).mean(-1, true) + 1e-5).rsqrt() * weight;  // as rms_norm() has it
    const TiledRows tiled(*kernels, 18, 96);
    at::Tensor plain = at::zeros({96}, at::kBFloat16);
    for (int64_t row = 0; row < 18; ++row) {
      const auto* from = static_cast<const float*>(x.const_data_ptr()) + row * 96;
      const auto* scale = static_cast<const float*>(weight.const_data_ptr());
      kernels->rms_norm(from, scale, 1e-5F, 96, row, tiled.data());
      kernels->rms_norm_bf16(from, scale, 1e-5F, 96, static_cast<uint16_t*>(plain.data_ptr()));
      for (int64_t column = 0; column < 96; ++column) {
        const float wanted = expected[row][column].item<float>();
        ASSERT_NEAR(tiled.at(row, column), wanted, 0.004F * std::abs(wanted)) << kernels->name;
        ASSERT_NEAR(plain[column].item<float>(), wanted, 0.004F * std::abs(wanted));
      }
    }
  }
}

TEST(CpuKernelsTest, RoundingAndUpcastingAreLibTorchs) {
  // Ties in both directions, signs, a large and a very small number.
  const at::Tensor values =
      at::cat({at::tensor({1.00390625F, 1.01171875F, -1.00390625F, 1e17F, 1e-40F, -0.0F, 0.1F}),
               normal({25}, 12)});
  // The squares of these vanish beside epsilon: the norm divides by exactly one.
  const at::Tensor x = at::full({32}, 0x1p-70F), weight = values * 0x1p70F;
  const at::Tensor exact = x * weight;
  for (const CpuKernels* kernels : runnable_kernels()) {
    at::Tensor rounded = at::zeros({32}, at::kBFloat16), wide = at::zeros({32});
    kernels->rms_norm_bf16(static_cast<const float*>(x.const_data_ptr()),
                           static_cast<const float*>(weight.const_data_ptr()), 1.0F, 32,
                           static_cast<uint16_t*>(rounded.data_ptr()));
    EXPECT_TRUE(at::equal(rounded, exact.to(at::kBFloat16))) << kernels->name;
    kernels->upcast(bits(rounded), 32, static_cast<float*>(wide.data_ptr()));
    EXPECT_TRUE(at::equal(wide, rounded.to(at::kFloat))) << kernels->name;
  }
}

/// What a table's kernels make of random inputs, one after the other: GEMMs, norms, roundings,
/// activations.
std::vector<at::Tensor> some_results(const CpuKernels& kernels) {
  const at::Tensor x = 2 * normal({21, 96}, 13), scale = normal({96}, 14);
  const at::Tensor rounded = x.to(at::kBFloat16);
  const TileWeight weight(normal({160, 96}, 15), gate_up_order(80));
  at::Tensor plain = at::zeros({21, 96}, at::kBFloat16), activated = at::zeros({21, 80});
  for (int64_t row = 0; row < 21; ++row)
    kernels.rms_norm_bf16(x[row].const_data_ptr<float>(), scale.const_data_ptr<float>(), 1e-5F, 96,
                          static_cast<uint16_t*>(plain[row].data_ptr()));
  const TiledRows rows(kernels, rounded), out(kernels, 21, 80);
  kernels.gemm_swiglu(weight.view(), rows.data(), 21, {0, weight.view().num_pairs()}, out.data(),
                      3);
  for (int64_t row = 0; row < 21; ++row)
    for (int64_t column = 0; column < 80; ++column) activated[row][column] = out.at(row, column);
  return {multiply(kernels, rounded, weight), plain.to(at::kFloat), activated};
}

TEST(CpuKernelsTest, Avx2GivesTheBitsOfAvx512AndPortableTheirNumbers) {
  const auto plain = some_results(*portable_kernels());
  for (const CpuKernels* kernels : {avx2_kernels(), avx512_kernels()}) {
    if (kernels == nullptr) continue;
    const auto found = some_results(*kernels);
    for (size_t i = 0; i < plain.size(); ++i)  // bfloat16 may fall to the other side
      EXPECT_TRUE(at::allclose(found[i], plain[i], i == 1 ? 0.008 : 1e-5, 1e-5))
          << kernels->name << " " << i;
  }
  if (avx2_kernels() == nullptr || avx512_kernels() == nullptr) GTEST_SKIP() << "no AVX-512";
  const auto narrow = some_results(*avx2_kernels()), wide = some_results(*avx512_kernels());
  for (size_t i = 0; i < wide.size(); ++i) EXPECT_TRUE(at::equal(narrow[i], wide[i])) << i;
}

TEST(CpuKernelsTest, AutoIsTheFastestThatAProcessorHas) {
  CpuFeatures cpu;  // from an old one on, each with what comes next
  const auto expect = [&cpu](CpuIsa plain, CpuIsa quantized) {
    EXPECT_EQ(fastest_isa(cpu, false), plain);
    EXPECT_EQ(fastest_isa(cpu, true), quantized);
  };
  expect(CpuIsa::Portable, CpuIsa::Portable);
  cpu.avx2 = true;
  expect(CpuIsa::Avx2, CpuIsa::Avx2);
  cpu.avx512 = true;
  expect(CpuIsa::Avx512, CpuIsa::Avx2);
  cpu.avx512_vnni = true;
  expect(CpuIsa::Avx512, CpuIsa::Avx512);
  cpu.avx512_bf16 = true;  // Intel's: slower than multiply-adds
  expect(CpuIsa::Avx512, CpuIsa::Avx512);
  cpu.dot_products_are_fast = true;
  expect(CpuIsa::Avx512Bf16, CpuIsa::Avx512);
  cpu.amx_bf16 = true;
  expect(CpuIsa::Amx, CpuIsa::Avx512);
  cpu.amx_int8 = true;
  expect(CpuIsa::Amx, CpuIsa::Amx);
}

TEST(CpuKernelsTest, AnIsaIsItsOwnTableOrNone) {
  EXPECT_EQ(kernels_for(CpuIsa::Amx, false), amx_kernels());
  EXPECT_EQ(kernels_for(CpuIsa::Avx512Bf16, false), dot_kernels());
  EXPECT_EQ(kernels_for(CpuIsa::Avx512, false), avx512_kernels());
  EXPECT_EQ(kernels_for(CpuIsa::Avx2, false), avx2_kernels());
  EXPECT_EQ(kernels_for(CpuIsa::Portable, false), portable_kernels());
  EXPECT_EQ(kernels_for(CpuIsa::Avx2, true), avx2_quant_kernels());
  EXPECT_EQ(kernels_for(CpuIsa::Portable, true), portable_quant_kernels());
  EXPECT_EQ(kernels_for(CpuIsa::Amx, true), amx_quant_kernels());
  for (const CpuIsa isa : {CpuIsa::Avx512Bf16, CpuIsa::Avx512})
    EXPECT_EQ(kernels_for(isa, true),
              kernels_for(isa, false) != nullptr ? vnni_kernels() : nullptr);
  for (const bool quantized : {false, true}) {
    ASSERT_NE(kernels_for(CpuIsa::Auto, quantized), nullptr);
    EXPECT_EQ(kernels_for(CpuIsa::Auto, quantized)->quantize != nullptr, quantized);
  }
}

}  // namespace
}  // namespace medusa
