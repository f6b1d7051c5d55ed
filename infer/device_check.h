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

/// Decodes with small random models (two layers, bfloat16) in a few passes and compares:
///  1. the logits of a prompt and of two sequences' trees in one pass with the reference's on the
///     CPU, within bfloat16's rounding;
///  2. greedy text of the loop of captured steps, plain and with heads some of whose drafts stand,
///     with the host's loop on the same device, token for token.
/// A few seconds on a GPU that has to start, some 50 MB of its memory.
/// @returns  what differed, or what the device threw; empty: it computes what the reference does.
/// @throws Interrupted  SIGINT or SIGTERM came.
std::string check_device(const CheckedDevice& checked);

}  // namespace medusa
