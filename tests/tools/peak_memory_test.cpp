#include <gtest/gtest.h>

#include <vector>

#include "tools/measure/resources.h"

namespace medusa {
namespace {

TEST(PeakMemory, RemembersWhatWasGivenBack) {
  reset_peak_memory(at::kCPU);
  const PeakMemory before = peak_memory(at::kCPU);
  if (before.main == 0) GTEST_SKIP() << "no peak of memory told";
  constexpr int64_t kBytes = 64 << 20;
  const auto touched = [] {
    const std::vector<char> pages(kBytes, 1);
    return pages.back();
  };
  EXPECT_EQ(touched(), 1);
  const PeakMemory after = peak_memory(at::kCPU);
  EXPECT_GE(after.main, before.main + kBytes / 2);
  EXPECT_FALSE(after.device) << "a CPU's memory is the main one";
  EXPECT_EQ(after.where_computed(), after.main);
}

TEST(PeakMemory, IsToldAsFarAsItIsKnown) {
  EXPECT_EQ(memory_text(PeakMemory{}), "");
  EXPECT_EQ(memory_text({1'440'000'000, {}}), "; peak memory 1.44 GB");
  EXPECT_EQ(memory_text({1'440'000'000, 13'504'000'000}),
            "; peak memory 1.44 GB, 13.50 GB on the GPU");
  EXPECT_EQ(memory_text({0, 500'000'000}), "; peak memory on the GPU 0.50 GB");
}

}  // namespace
}  // namespace medusa
