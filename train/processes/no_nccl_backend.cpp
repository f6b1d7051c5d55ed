// Stands for nccl_backend.cpp where the build has no CUDA or no nccl.h.
#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "base/error.h"
#include "train/processes/nccl_backend.h"

namespace medusa {

bool has_nccl() { return false; }

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>&,
                                                    const ProcessPlace& place, at::Device, double) {
  throw UserError(fmt::format(
      "train: process {} of {} wants NCCL, found a program that was built without, expected one "
      "with it; build where LibTorch has its CUDA side and nccl.h is found",
      place.rank, place.world_size));
}

}  // namespace medusa
