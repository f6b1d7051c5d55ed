// NCCL, which adds up what lies on GPUs without a way through the CPU's memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "base/process.h"

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace medusa {

/// Whether the build has it: LibTorch's CUDA side, CUDA's headers and nccl.h were there.
bool has_nccl();

/// All processes call it together. A failed or late operation is not told by NCCL's own watchmen,
/// which are off: CollectiveSums waits for each with a limit.
/// @param device   the GPU of this process, which no other process has.
/// @param timeout  that limit, seconds.
/// @throws UserError  the build has no NCCL.
c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const ProcessPlace& place, at::Device device,
                                                    double timeout);

}  // namespace medusa
