// Tensors as our kernels take them, and on which of several GPUs these start.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

namespace medusa {

/// @returns  null of an undefined tensor.
template <typename T>
T* elements(const at::Tensor& x) {
  return x.defined() ? static_cast<T*>(x.data_ptr()) : nullptr;
}

/// LibTorch's ops go to the device of their tensors; kernels start on the current one. While this
/// lives that is the given one; nothing for the CPU, where tests emulate.
class KernelDeviceGuard {
 public:
  explicit KernelDeviceGuard(c10::Device device) {
    if (!device.is_cpu()) guard_.reset_device(device);
  }

 private:
  c10::OptionalDeviceGuard guard_;
};

}  // namespace medusa
