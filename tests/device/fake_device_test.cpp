// The fake device itself: it computes what the CPU does, and refuses what a GPU would refuse.
#include "tests/device/fake_device.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <functional>

namespace medusa {
namespace {

using fixtures::fake_device;

/// What the last c10::Error said first.
std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "(no error)";
}

at::Tensor elements(at::IntArrayRef sizes, double factor = 0.7) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::sin(at::arange(count, at::kFloat) * factor).view(sizes);
}

class FakeDevice : public testing::Test {
 protected:
  void SetUp() override { fixtures::use_fake_device(); }
};
class FakeDeviceDeathTest : public FakeDevice {};

TEST_F(FakeDevice, OpsGiveTheCpusResults) {
  const auto compute = [](at::Device device) {
    const at::Tensor a = elements({5, 7}).to(device), b = elements({7, 3}, 1.1).to(device);
    at::Tensor x = at::matmul(a, b).softmax(-1);
    x = at::cat({x, x.t().contiguous().view({5, 3}) * 2.0}, 1);
    x = x.index_select(0, at::tensor({4, 0, 2, 2}, at::kLong).to(device));
    x = at::where(x > 0.5, x, at::zeros_like(x)) + x.index({at::tensor({1, 3, 0, 0}, at::kLong)});
    x.select(1, 2).add_(x.select(1, 3));
    x.narrow(0, 1, 2).copy_(elements({2, 6}));
    const auto [values, rows] = x.topk(2, 1);
    return std::vector<at::Tensor>{
        x, values, rows, x.sum(), x.to(at::kBFloat16), x.unfold(1, 3, 1), at::one_hot(rows, 6)};
  };
  const auto expected = compute(at::kCPU), found = compute(fake_device());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].device(), fake_device());
    EXPECT_TRUE(at::equal(found[i].cpu(), expected[i])) << i;
  }
}

TEST_F(FakeDevice, GradientsAreTheCpus) {
  const auto gradients = [](at::Device device) {
    const at::Tensor a = elements({5, 7}).to(device).set_requires_grad(true);
    const at::Tensor b = elements({7, 3}, 1.1).to(device).set_requires_grad(true);
    const at::Tensor x = at::silu(at::linear(a, b.t())).log_softmax(-1);
    x.gather(1, at::tensor({0, 2, 1, 1, 0}, at::kLong).to(device).view({5, 1})).sum().backward();
    return std::vector<at::Tensor>{a.grad(), b.grad()};
  };
  const auto expected = gradients(at::kCPU), found = gradients(fake_device());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].device(), fake_device());
    EXPECT_TRUE(at::allclose(found[i].cpu(), expected[i])) << i;
  }
}

TEST_F(FakeDevice, WorksInInferenceMode) {
  const c10::InferenceMode no_grad;
  at::Tensor x = elements({4, 4}).to(fake_device());
  x.add_(x);
  EXPECT_TRUE(at::equal(x.cpu(), elements({4, 4}) * 2));
}

TEST_F(FakeDevice, AResultThatGrowsGrowsThere) {
  const at::Tensor a = elements({2, 3}).to(fake_device());
  at::Tensor out = at::empty({0}, a.options());
  at::cat_out(out, {a, a}, 0);
  EXPECT_EQ(out.device(), fake_device());
  EXPECT_TRUE(at::equal(out.cpu(), at::cat({elements({2, 3}), elements({2, 3})})));
  out.resize_({13});
  EXPECT_TRUE(at::equal(out.narrow(0, 0, 6).cpu(), elements({6})));
}

TEST_F(FakeDevice, TensorsOfTwoDevicesDoNotMix) {
  const at::Tensor here = elements({3, 3}), there = here.to(fake_device());
  const std::string mixed = "Expected all tensors to be on the same device";
  for (const auto& run : std::vector<std::function<void()>>{
           [&] { at::add(there, here); },
           [&] { at::matmul(there, here); },
           [&] { at::matmul(here, there); },
           [&] {
             at::cat({there, here});
           },
           [&] { there.index_select(0, at::tensor({0}, at::kLong)); },
           [&] { here.index_select(0, at::tensor({0}, at::kLong).to(fake_device())); },
           [&] { there.masked_fill(here > 0, 0); },
           [&] { at::Tensor(there).add_(here); },
       })
    EXPECT_NE(error_of(run).find(mixed), std::string::npos) << error_of(run);
  EXPECT_EQ(error_of([&] { at::add(there, at::scalar_tensor(2)); }), "(no error)");
}

TEST_F(FakeDevice, AGeneratorOfTheCpuIsRefused) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(1U);
  const auto draw = [&](at::Device device) {
    at::rand({3}, generator, at::TensorOptions(device).dtype(at::kFloat));
  };
  EXPECT_EQ(error_of([&] { draw(at::kCPU); }), "(no error)");
  EXPECT_NE(error_of([&] { draw(fake_device()); }).find("device type for generator"),
            std::string::npos);
}

TEST_F(FakeDevice, HasAGeneratorOfItsOwn) {
  const auto draw = [](uint64_t seed) {
    at::Generator generator = at::globalContext()
                                  .getAcceleratorHooksInterface(fake_device().type())
                                  .getNewGenerator(fake_device().index());
    generator.set_current_seed(seed);
    return at::rand({3}, generator, at::TensorOptions(fake_device()).dtype(at::kFloat)).cpu();
  };
  EXPECT_TRUE(at::equal(draw(1), draw(1)));
  EXPECT_FALSE(at::equal(draw(1), draw(2)));
}

TEST_F(FakeDevice, UnwrittenMemoryHoldsNoNumbers) {
  EXPECT_TRUE(at::empty({3}, fake_device()).isnan().all().item<bool>());
}

TEST_F(FakeDeviceDeathTest, TheHostCannotReadOrWriteItsMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const at::Tensor there = elements({3}).to(fake_device());
  EXPECT_EQ(there[1].item<float>(), elements({3})[1].item<float>());
  auto* data = there.mutable_data_ptr<float>();
  EXPECT_DEATH(EXPECT_EQ(data[1], 0), "");
  EXPECT_DEATH(data[1] = 0, "");
}

}  // namespace
}  // namespace medusa
