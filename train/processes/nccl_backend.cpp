#include "train/processes/nccl_backend.h"

#include <c10/cuda/CUDAGuard.h>

#include <chrono>
#include <cstdlib>
#define USE_C10D_NCCL  // the library has it, and its header wants this said
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "train/processes/waiting.h"

namespace medusa {

bool has_nccl() { return true; }

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const ProcessPlace& place, at::Device device,
                                                    double timeout) {
  // c10d takes these from the environment alone, and the environment is the process's: a process
  // takes part in one training, so there is no other group that they could disturb, and they are
  // set before NCCL's threads begin, which read it. Its own watchmen end the process, without a
  // word of what to do, where an operation fails or is late; CollectiveSums says it.
  for (const char* name : {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ENABLE_MONITORING",
                           "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_PROPAGATE_ERROR"})
    ::setenv(name, "0", /*overwrite=*/1);
  const c10::cuda::CUDAGuard guard(device);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = Waiting::milliseconds_of(2 * timeout);
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(
      store, static_cast<int>(place.rank), static_cast<int>(place.world_size), std::move(options));
  backend->setBoundDeviceId(device);
  return backend;
}

}  // namespace medusa
