// An accelerator that is none: LibTorch's PrivateUse1 backend over guarded host memory, whose ops
// are the CPU's. Code runs on it where it would run on a GPU, and fails where it would fail there:
// when it reads a tensor's memory from the host, mixes tensors of two devices in one op, or hands
// a generator of the CPU to it. Product code does not know it.
//
// What it cannot show: which ops and dtypes a GPU lacks, its rounding, its streams.
#pragma once

#include <c10/core/Device.h>

namespace medusa::fixtures {

at::Device fake_device();

/// Makes it the accelerator of this process, once and for all: autograd knows only one.
void use_fake_device();

/// Whether it is, so that no GPU can be used in its place.
bool uses_fake_device();

}  // namespace medusa::fixtures
