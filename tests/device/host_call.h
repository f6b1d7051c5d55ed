// An op of the fake device, computed by the CPU's kernel.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace medusa::fixtures {

/// Calls the CPU's kernel on tensors that share the device's memory, which is open meanwhile, so
/// whatever it writes in place is on the device already; new tensors are copied there.
/// @throws c10::Error  its tensors do not lie on one device; an op whose result shares its
/// argument's memory, which the
///                     device has to have of its own.
void call_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// What aten::_copy_from does, between any two devices of which one is the fake.
void copy_over_host(const at::Tensor& from, const at::Tensor& to);

}  // namespace medusa::fixtures
