#include "base/allowed_cpus.h"

#include <sched.h>

#include <algorithm>
#include <numeric>
#include <thread>

namespace medusa {

std::vector<int> allowed_cpus() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {  // a machine of more than 1,024
    std::vector<int> all(std::max(1U, std::thread::hardware_concurrency()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  return cpus;
}

}  // namespace medusa
