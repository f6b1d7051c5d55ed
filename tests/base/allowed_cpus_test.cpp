#include "base/allowed_cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace medusa {
namespace {

TEST(AllowedCpus, AreThoseOfTheCallingThread) {
  const std::vector<int> all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  for (const int cpu : all) {
    std::vector<int> seen;
    std::thread([&] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
      seen = allowed_cpus();
    }).join();
    EXPECT_EQ(seen, std::vector<int>{cpu});
  }
  EXPECT_EQ(allowed_cpus(), all);
}

}  // namespace
}  // namespace medusa
