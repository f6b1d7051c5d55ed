// On which of several GPUs our kernels start.
#pragma once

#include <c10/core/DeviceGuard.h>

namespace medusa {

/// LibTorch's ops go to the device of their tensors; kernels start on the current one. While this
/// lives that is the given one; nothing for the CPU, where tests emulate.
class DeviceOfKernels {
 public:
  explicit DeviceOfKernels(c10::Device device) {
    if (!device.is_cpu()) guard_.reset_device(device);
  }

 private:
  c10::OptionalDeviceGuard guard_;
};

}  // namespace medusa
