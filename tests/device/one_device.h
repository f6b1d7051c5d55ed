// The rule that a GPU's ops keep: their tensors lie on one device.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

namespace medusa::fixtures {

/// Of the CPU's tensors an op of the device may take those of one number without dimensions, and
/// those that index (or put) by a list of tensors; of generators none.
/// @throws c10::Error  in CUDA's words.
void check_one_device(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);

}  // namespace medusa::fixtures
