// Measures what this machine can do at most: what the parts of a step are compared with.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "backbone/execution_context.h"
#include "tools/profile/profile_result.h"

namespace medusa {

/// Takes some seconds and 0.6 GB. Uses `threads` threads of LibTorch and leaves as many as it
/// found.
/// @param dtype      of the GEMMs.
/// @param execution  of our own.
/// @param wait       until the device has done what was asked of it; may be empty.
Roofline measure_roofline(at::Device device, at::ScalarType dtype, int threads,
                          const ExecutionContext& execution, const std::function<void()>& wait);

}  // namespace medusa
