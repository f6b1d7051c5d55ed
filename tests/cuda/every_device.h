// The devices that our kernels are tested on: emulated on the CPU, always; a GPU where there is
// one.
#pragma once

#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "backbone/cuda/cuda_llama.h"
#include "backbone/cuda/device_runtime.h"
#include "backbone/llama.h"
#include "heads/cuda/head_kernels.h"
#include "infer/cuda/device_decoder.h"
#include "infer/cuda/step_kernels.h"

namespace medusa {

const LayerKernels* emulated_layer_kernels();
const GemmKernels* emulated_gemm_kernels();
const HeadKernels* emulated_head_kernels();
const StepKernels* emulated_step_kernels();
DeviceRuntime* emulated_runtime();

enum class TestedDevice { Emulated, Cuda };

/// Whether a GPU and our kernels for it are here.
inline bool has_cuda_kernels() {
  const auto& hooks = at::detail::getCUDAHooks();
  return cuda_kernels().complete() && hooks.hasCUDA() && hooks.deviceCount() > 0;
}

/// A test on each device. The CUDA one skips where there is no GPU, or no compiler for it.
class OnEveryDevice : public testing::TestWithParam<TestedDevice> {
 protected:
  void SetUp() override {
    if (GetParam() == TestedDevice::Cuda && !has_cuda_kernels()) GTEST_SKIP() << "no GPU";
  }
  static bool emulated() { return GetParam() == TestedDevice::Emulated; }
  static at::Device device() { return emulated() ? at::kCPU : at::kCUDA; }
  static DeviceKernels kernels() {
    if (!emulated()) return cuda_kernels();
    return {emulated_layer_kernels(), emulated_gemm_kernels(), emulated_runtime()};
  }
  static Llama llama_on_kernels(Weights weights) {
    auto backend = std::make_unique<CudaLlama>(weights, kernels());
    return {std::move(weights), std::move(backend)};
  }
  static DeviceLoopKernels loop_kernels() {
    if (!emulated()) return cuda_loop_kernels();
    return {emulated_head_kernels(), emulated_step_kernels(), emulated_runtime()};
  }
};

/// For INSTANTIATE_TEST_SUITE_P: `cuda` in a test's name is for real.
inline auto every_device() { return testing::Values(TestedDevice::Emulated, TestedDevice::Cuda); }
inline std::string device_name(const testing::TestParamInfo<TestedDevice>& info) {
  return info.param == TestedDevice::Emulated ? "emulated" : "cuda";
}

}  // namespace medusa
