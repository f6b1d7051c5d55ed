// Stands for mpi_group.cpp where CMake found no MPI.
#include <fmt/format.h>

#include "base/error.h"
#include "train/processes/process_group.h"

namespace medusa {

std::unique_ptr<ProcessGroup> make_mpi_group(const ProcessPlace& place, double /*timeout*/) {
  throw UserError(fmt::format(
      "train: {} processes were started, found a program that was built without MPI, expected one "
      "with it; install libopenmpi-dev and openmpi-bin and build again, or start them with "
      "torchrun",
      place.world_size));
}

}  // namespace medusa
