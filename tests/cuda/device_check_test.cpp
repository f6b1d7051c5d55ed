#include "infer/device_check.h"

#include "tests/cuda/every_device.h"

namespace medusa {
namespace {

class DeviceCheckTest : public OnEveryDevice {
 protected:
  static CheckedDevice checked() { return {device(), kernels(), loop_kernels()}; }
};

TEST_P(DeviceCheckTest, PassesADeviceThatComputesWhatTheReferenceDoes) {
  EXPECT_EQ(check_device(checked()), "");
}

/// The emulated device with one kernel that is not right.
class BrokenDeviceTest : public testing::Test {
 protected:
  BrokenDeviceTest() : layers_(*emulated_layer_kernels()), steps_(*emulated_step_kernels()) {}

  std::string check() const {
    return check_device({at::kCPU,
                         {&layers_, emulated_gemm_kernels()},
                         {emulated_head_kernels(), &steps_, emulated_runtime()}});
  }

  LayerKernels layers_;
  StepKernels steps_;
};

TEST_F(BrokenDeviceTest, LogitsTellOfALayerThatIsWrong) {
  layers_.norm = [](const NormArgs&, DeviceStream) {};
  const std::string found = check();
  EXPECT_EQ(found.find("logits differ from the reference's by"), 0U) << found;
}

TEST_F(BrokenDeviceTest, TextTellsOfAStepThatIsWrong) {
  steps_.verify_rows = [](const VerifyRowsArgs&, DeviceStream) {};
  const std::string found = check();
  EXPECT_EQ(found.find("text of captured steps, drafter none, differs"), 0U) << found;
}

TEST_F(BrokenDeviceTest, TextWithHeadsTellsOfRowsThatAreNotKept) {
  steps_.advance = [](const AdvanceArgs& args, DeviceStream stream) {
    emulated_step_kernels()->advance(args, stream);
    if (*args.counts > 1) --*args.lengths;  // right wherever no draft stood
  };
  const std::string found = check();
  EXPECT_EQ(found.find("text of captured steps, drafter medusa, differs"), 0U) << found;
}

TEST_F(BrokenDeviceTest, WhatADeviceThrowsIsTheFinding) {
  layers_.attend = [](const TreeAttentionArgs&, DeviceStream) {
    throw std::runtime_error("no kernel image is available\nbacktrace: …");
  };
  EXPECT_EQ(check(), "no kernel image is available");
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceCheckTest, every_device(), device_name);

}  // namespace
}  // namespace medusa
