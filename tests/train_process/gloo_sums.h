// The collectives of a backend of c10d, made of gloo.
#pragma once

#include "train/processes/collective_sums.h"
#include "train/processes/process_group.h"

namespace medusa {

/// @param group    of the same processes, which c10d connects. It stays.
/// @param timeout  seconds.
CollectiveSums sums_of_gloo(ProcessGroup& group, double timeout);

}  // namespace medusa
