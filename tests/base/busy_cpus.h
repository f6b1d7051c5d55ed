// Threads of a test on chosen CPUs, and neighbors that want the same ones.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

namespace medusa::fixtures {

/// From now on the calling thread, and those that it starts, run on these CPUs alone.
inline void stay_on(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

/// A thread on each of these CPUs that never waits, as long as this lives.
class BusyCpus {
 public:
  explicit BusyCpus(const std::vector<int>& cpus) {
    for (const int cpu : cpus)
      threads_.emplace_back([this, cpu] {
        stay_on({cpu});
        while (!stop_.load(std::memory_order_relaxed)) {
        }
      });
  }
  ~BusyCpus() {
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }
  BusyCpus(const BusyCpus&) = delete;
  BusyCpus& operator=(const BusyCpus&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace medusa::fixtures
