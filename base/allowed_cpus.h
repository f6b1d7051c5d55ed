// Which of the machine's CPUs this process may use.
#pragma once

#include <vector>

namespace medusa {

/// The numbers of the CPUs that the calling thread may run on, ascending, at least one: fewer than
/// the machine has under taskset, in a batch system's share or in a container with a set of CPUs.
///
/// Thread safety: any thread.
std::vector<int> allowed_cpus();

}  // namespace medusa
