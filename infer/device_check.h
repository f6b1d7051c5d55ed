// Whether a device decodes what the reference decodes: looked at before a GPU is taken unasked.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "backbone/cuda/cuda_llama.h"
#include "infer/cuda/device_decoder.h"

namespace medusa {

/// A device and what computes on it.
struct CheckedDevice {
  at::Device device;
  DeviceKernels kernels;   // not complete: LibTorch's ops compute there
  DeviceLoopKernels loop;  // not complete: the host's loop decodes there
};

/// The GPU with this build's kernels.
CheckedDevice checked_gpu(at::Device device);

struct DeviceCheck {
  bool passed = false;
  std::string finding{};  // what differed, or what the device refused; empty where it passed
};

/// Decodes with a small random model (two layers, bfloat16) in a few passes and compares:
///  1. the logits of a prompt and of two sequences' trees in one pass with the reference's on the
///     CPU, within bfloat16's rounding;
///  2. greedy text of the loop of captured steps, plain and with heads, with the host's loop on the
///     same device, token for token.
/// Whatever the device throws becomes the finding. A few seconds on a GPU that has to start, some
/// 50 MB of its memory.
/// @throws Interrupted  SIGINT or SIGTERM came.
DeviceCheck check_device(const CheckedDevice& checked);

}  // namespace medusa
