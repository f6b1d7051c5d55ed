#include "infer/device_check.h"

#include "tests/cuda/every_device.h"

namespace medusa {
namespace {

class DeviceCheckTest : public OnEveryDevice {
 protected:
  static CheckedDevice checked() { return {device(), kernels(), loop_kernels()}; }
};

TEST_P(DeviceCheckTest, PassesADeviceThatComputesWhatTheReferenceDoes) {
  const DeviceCheck check = check_device(checked());
  EXPECT_TRUE(check.passed) << check.finding;
  EXPECT_EQ(check.finding, "");
}

/// The emulated device with one kernel that is not right.
class BrokenDeviceTest : public testing::Test {
 protected:
  BrokenDeviceTest() : layers_(*emulated_layer_kernels()), steps_(*emulated_step_kernels()) {}

  DeviceCheck check() const {
    return check_device({at::kCPU,
                         {&layers_, emulated_product_kernels()},
                         {emulated_head_kernels(), &steps_, emulated_runtime()}});
  }

  LayerKernels layers_;
  StepKernels steps_;
};

TEST_F(BrokenDeviceTest, LogitsTellOfALayerThatIsWrong) {
  layers_.silu_mul = [](const SiluMulArgs&, DeviceStream) {};
  const DeviceCheck found = check();
  EXPECT_FALSE(found.passed);
  EXPECT_NE(found.finding.find("logits differ from the reference's by"), std::string::npos)
      << found.finding;
}

TEST_F(BrokenDeviceTest, TextTellsOfAStepThatIsWrong) {
  steps_.judge_rows = [](const JudgeRowsArgs&, DeviceStream) {};
  const DeviceCheck found = check();
  EXPECT_FALSE(found.passed);
  EXPECT_NE(found.finding.find("text of captured steps, drafter none, differs"), std::string::npos)
      << found.finding;
}

TEST_F(BrokenDeviceTest, TextWithHeadsTellsOfRowsThatAreNotKept) {
  steps_.advance = [](const AdvanceArgs& args, DeviceStream stream) {
    emulated_step_kernels()->advance(args, stream);
    ++*args.lengths;
  };
  EXPECT_FALSE(check().passed);
}

TEST_F(BrokenDeviceTest, WhatADeviceThrowsIsTheFinding) {
  layers_.attend = [](const TreeAttentionArgs&, DeviceStream) {
    throw std::runtime_error("no kernel image is available\nbacktrace: …");
  };
  const DeviceCheck found = check();
  EXPECT_FALSE(found.passed);
  EXPECT_EQ(found.finding, "no kernel image is available");
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceCheckTest, every_device(), device_name);

}  // namespace
}  // namespace medusa
