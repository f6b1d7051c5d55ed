// The reference: passes in LibTorch's ops, for any dtype and device.
#pragma once

#include <memory>

#include "backbone/llama_backend.h"

namespace medusa {

/// What every other backend is tested against, and what computes where none of them runs.
/// @param non_layer  its tensors are shared, not copied.
std::unique_ptr<LlamaBackend> make_reference_llama(const Weights& non_layer,
                                                   const ExecutionContext& execution);

}  // namespace medusa
