// The devices beside the CPU that tests of the plain path run on: the fake one always, and a GPU
// where there is one. What they are compared with are the CPU's numbers.
#pragma once

#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gtest/gtest.h>

#include "tests/device/fake_device.h"

namespace medusa::fixtures {

inline bool has_gpu() {
  return at::detail::getCUDAHooks().hasCUDA() && at::detail::getCUDAHooks().deviceCount() > 0;
}

/// Tests whose parameter is a device. Whatever lies there is made in the test itself.
class OnDevice : public testing::TestWithParam<at::Device> {
 protected:
  void SetUp() override {
    if (!device().is_cuda()) return use_fake_device();
    if (!has_gpu()) GTEST_SKIP() << "no GPU";
    if (uses_fake_device()) GTEST_SKIP() << "no GPU beside the fake device; run cuda/* alone";
  }

  static at::Device device() { return GetParam(); }

  /// @param found  of the device.
  static void expect_close(const at::Tensor& found, const at::Tensor& expected,
                           double tolerance = 1e-5) {
    ASSERT_EQ(found.sizes(), expected.sizes());
    EXPECT_TRUE(at::allclose(found.cpu(), expected, tolerance, tolerance))
        << "apart by " << (found.cpu() - expected).abs().max().item<double>();
  }
};

inline std::string device_name(const testing::TestParamInfo<at::Device>& device) {
  return device.param.is_cuda() ? "gpu" : "fake";
}

}  // namespace medusa::fixtures

/// Makes fake/<Suite>.* and cuda/<Suite>.* of the tests.
#define MEDUSA_ON_EVERY_DEVICE(Suite)                                                     \
  INSTANTIATE_TEST_SUITE_P(fake, Suite, testing::Values(medusa::fixtures::fake_device()), \
                           medusa::fixtures::device_name);                                \
  INSTANTIATE_TEST_SUITE_P(cuda, Suite, testing::Values(at::Device(at::kCUDA, 0)),        \
                           medusa::fixtures::device_name)
