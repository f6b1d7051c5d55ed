#include "heads/cpu/head_math.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

namespace medusa {
namespace {

constexpr int64_t kSize = 96;

at::Tensor normal(uint64_t seed) {
  return at::randn({kSize}, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat);
}
const float* floats(const at::Tensor& x) { return static_cast<const float*>(x.const_data_ptr()); }
uint16_t* bits(const at::Tensor& x) { return static_cast<uint16_t*>(x.data_ptr()); }

/// Equal but for a number in a hundred that is rounded to the other side.
void expect_rounded(const at::Tensor& found, const at::Tensor& exact) {
  EXPECT_TRUE(at::allclose(found.to(at::kFloat), exact.to(at::kFloat), 0.0079, 1e-30))
      << found << exact;
  EXPECT_LE(found.ne(exact.to(at::kBFloat16)).sum().item<int64_t>(), kSize / 100 + 1);
}

TEST(HeadMath, ScaleIsExactForPowersOfTwo) {
  const at::Tensor x = normal(1).to(at::kBFloat16), y = at::zeros({kSize}, at::kBFloat16);
  scale_row(bits(x), 16.0F, kSize, bits(y));
  EXPECT_TRUE(at::equal(y, x * 16));
}

TEST(HeadMath, RoundIsToTheNearestAndToEvenOnTies) {
  at::Tensor x = normal(7), y = at::zeros({kSize}, at::kBFloat16);
  x.narrow(0, 0, 3).copy_(at::tensor({1 + 0x1p-8F, 1 + 3 * 0x1p-8F, 1 + 0x1p-8F + 0x1p-20F}));
  round_row(floats(x), kSize, bits(y));
  EXPECT_TRUE(at::equal(y, x.to(at::kBFloat16)));
}

TEST(HeadMath, ActivateIsSiluOfTheSum) {
  at::Tensor x = 3 * normal(2);
  const at::Tensor bias = normal(3), y = at::zeros({kSize}, at::kBFloat16);
  x.narrow(0, 0, 6).copy_(at::tensor({100.0F, -100.0F, 1e6F, -80.0F, 0.0F, -20.0F}));
  activate_row(floats(x), floats(bias), kSize, bits(y));
  const at::Tensor sum = x + bias;
  // Far below zero SiLU is -0 in bfloat16's eyes; there exp is not asked to be exact.
  const at::Tensor exact = at::where(sum < -60, at::zeros_like(sum), at::silu(sum));
  expect_rounded(at::where(sum < -60, at::zeros_like(y), y), exact);
  EXPECT_LT(y.masked_select(sum < -60).abs().max().item<float>(), 1e-20F);
}

TEST(HeadMath, AddRoundsTheSumOnce) {
  // 1 + 2^-8 is a tie and goes to 1 (even); a little more goes up. Rounding x to bfloat16 first
  // would lose the little more.
  at::Tensor state = at::ones({kSize}, at::kBFloat16), x = at::full({kSize}, 0x1p-8F);
  x.narrow(0, 0, 10).copy_(at::full({10}, 0x1p-8F + 0x1p-20F));
  const at::Tensor exact = (state + x).to(at::kBFloat16);
  add_to_row(floats(x), kSize, bits(state));
  EXPECT_TRUE(at::equal(state, exact));
  EXPECT_EQ(state[0].item<float>(), 1.0078125F);
  EXPECT_EQ(state[10].item<float>(), 1.0F);
}

TEST(HeadMath, AddActivatedAddsSiluOfTheSum) {
  const at::Tensor x = normal(4), bias = normal(5), state = normal(6).to(at::kBFloat16);
  const at::Tensor exact = (state + at::silu(x + bias)).to(at::kBFloat16);
  add_activated_to_row(floats(x), floats(bias), kSize, bits(state));
  expect_rounded(state, exact);
}

TEST(HeadMath, WritesItsColumnsOnly) {
  const at::Tensor x = normal(7), bias = normal(8);
  const at::Tensor before = normal(9).to(at::kBFloat16);
  at::Tensor state = before.clone();
  add_activated_to_row(floats(x) + 32, floats(bias) + 32, 32, bits(state) + 32);
  add_to_row(floats(x) + 32, 32, bits(state) + 32);
  activate_row(floats(x) + 32, floats(bias) + 32, 32, bits(state) + 32);
  scale_row(bits(before) + 32, 2.0F, 32, bits(state) + 32);
  EXPECT_TRUE(at::equal(state.narrow(0, 0, 32), before.narrow(0, 0, 32)));
  EXPECT_TRUE(at::equal(state.narrow(0, 64, 32), before.narrow(0, 64, 32)));
  EXPECT_TRUE(at::equal(state.narrow(0, 32, 32), before.narrow(0, 32, 32) * 2));
}

}  // namespace
}  // namespace medusa
