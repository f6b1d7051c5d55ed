#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "backbone/cpu/cpu_kernels.h"
#include "backbone/linear.h"
#include "tests/backbone/normal_tensor.h"

namespace medusa {
namespace {

using fixtures::normal;

TEST(Linear, EveryKindGivesTheGemmInFloat32) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const Kernels kernels : {Kernels::Auto, Kernels::Reference}) {
      const at::Tensor weight = normal({50, 70}, 1).to(dtype), x = normal({9, 70}, 2).to(dtype);
      const at::Tensor y = Linear(weight, kernels)(x);
      const at::Tensor exact = at::matmul(x.to(at::kDouble), weight.to(at::kDouble).t());
      EXPECT_EQ(y.scalar_type(), at::kFloat);
      // bfloat16 GEMMs of this size (|y| up to 32) are rounded to multiples of 1/8.
      const double tolerance = dtype == at::kFloat || kernels == Kernels::Auto ? 1e-4 : 0.1;
      EXPECT_LT((y.to(at::kDouble) - exact).abs().max().item<double>(), tolerance);
    }
}

TEST(Linear, RowsInBfloat16DoNotDependOnTheirNeighbors) {
  for (const Kernels kernels : {Kernels::Auto, Kernels::Reference}) {
    const Linear linear(normal({100, 96}, 3).to(at::kBFloat16), kernels);
    const at::Tensor x = normal({80, 96}, 4).to(at::kBFloat16);
    const at::Tensor all = linear(x);
    for (const int64_t m : {1, 2, 16, 33})
      EXPECT_TRUE(at::equal(linear(x.narrow(0, 11, m)), all.narrow(0, 11, m))) << m;
  }
}

TEST(Linear, RowsBeforeAQuantizedWeightDoNotDependOnTheirNeighbors) {
  for (const int64_t k : {96, 70}) {
    const QuantizedMatrix weight = quantize_matrix(normal({100, k}, 3));
    const Linear linear(weight, Kernels::Auto);
    EXPECT_STREQ(linear.kernels(), kernels_for(CpuIsa::Auto, /*quantized=*/true)->name);
    const at::Tensor x = normal({80, k}, 4).to(at::kBFloat16).to(at::kFloat);
    const at::Tensor all = linear(x);
    for (const int64_t m : {1, 2, 16, 33})
      EXPECT_TRUE(at::equal(linear(x.narrow(0, 11, m)), all.narrow(0, 11, m))) << m;
    EXPECT_LT((all - Linear(weight, Kernels::Reference)(x)).abs().max().item<float>(), 1e-4);
  }
}

TEST(Linear, TakesRowsThatDoNotLieTogether) {
  const Linear linear(normal({8, 32}, 5).to(at::kBFloat16), Kernels::Auto);
  const at::Tensor wide = normal({6, 64}, 6).to(at::kBFloat16);
  EXPECT_TRUE(at::equal(linear(wide.narrow(1, 0, 32)), linear(wide.narrow(1, 0, 32).contiguous())));
}

TEST(Linear, MultipliesOnTheIsaThatWasAskedFor) {
  const at::Tensor weight = normal({8, 32}, 7).to(at::kBFloat16);
  for (const CpuIsa isa : {CpuIsa::Portable, CpuIsa::Avx2, CpuIsa::Avx512}) {
    const CpuKernels* expected = kernels_for(isa, /*quantized=*/false);
    if (expected == nullptr) continue;  // not on this machine
    EXPECT_STREQ(Linear(weight, ExecutionContext({.isa = isa})).kernels(), expected->name);
  }
  EXPECT_STREQ(Linear(weight, Kernels::Reference).kernels(), "LibTorch");
}

}  // namespace
}  // namespace medusa
