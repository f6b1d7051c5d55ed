#include "base/memory_use.h"

#include <gtest/gtest.h>

#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define MEDUSA_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEDUSA_ASAN
#endif
#endif

namespace medusa {
namespace {

TEST(MemoryUse, GrowsByWhatIsTouched) {
  const int64_t before = memory_in_use();
  ASSERT_GT(before, 0);
  std::vector<char> block(64 << 20, 1);
  const int64_t grown = memory_in_use() - before;
  EXPECT_GT(grown, 60 << 20);
  EXPECT_LT(grown, 80 << 20);
  EXPECT_EQ(block[1000], 1);
}

#ifndef MEDUSA_ASAN  // whose own malloc keeps what is freed
TEST(MemoryUse, OfWhatWasFreedIsGivenBackOnRequest) {
  // Small enough for malloc's heap, and every second one stays, so that it cannot shrink.
  std::vector<std::vector<char>> blocks;
  for (int i = 0; i < 2048; ++i) blocks.emplace_back(64 << 10, 1);
  for (size_t i = 0; i < blocks.size(); i += 2) std::vector<char>().swap(blocks[i]);
  const int64_t before = memory_in_use();
  give_back_freed_memory();
  EXPECT_GT(before - memory_in_use(), 50 << 20);
  EXPECT_EQ(blocks[1][1000], 1);
}
#endif

TEST(MemoryUse, IsWrittenInGigabytes) {
  EXPECT_EQ(memory_text(1234567890), "1.2 GB");
  EXPECT_EQ(memory_text(0), "-");
}

}  // namespace
}  // namespace medusa
