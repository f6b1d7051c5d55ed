#include "runtime/measure/interleave.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace medusa {
namespace {

using Clock = std::chrono::steady_clock;

TEST(Turns, EachThingIsDoneForAWhileBeforeItsSamplesCount) {
  Clock::time_point turn_begin{};
  size_t at_turn = 99;
  std::vector<size_t> kept;
  const auto step = [&](size_t i) {
    if (i != at_turn) {
      turn_begin = Clock::now();
      at_turn = i;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return i;
  };
  interleave(2, 4, step, [&](size_t i, size_t sample) {
    EXPECT_EQ(sample, i);
    EXPECT_GE(Clock::now() - turn_begin, kSettling);
    kept.push_back(i);
    return true;
  });
  EXPECT_EQ(kept, (std::vector<size_t>{0, 0, 0, 1, 1, 1, 0, 1}));
}

TEST(Turns, EndWhenNoMoreIsWanted) {
  int64_t kept = 0;
  interleave(
      3, 9, [](size_t) { return 0; }, [&](size_t, int) { return ++kept < 5; });
  EXPECT_EQ(kept, 5);
}

}  // namespace
}  // namespace medusa
