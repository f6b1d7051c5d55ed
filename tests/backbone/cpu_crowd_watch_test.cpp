#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "backbone/cpu/threads/crowd_watch.h"
#include "base/process.h"
#include "tests/base/busy_cpus.h"

namespace medusa {
namespace {

/// Runs of a pool, one behind the other.
class Runs {
 public:
  explicit Runs(int num_threads) : watch_(num_threads) {}

  /// @param waited  in a run, by its number of threads.
  /// @param gap     before each run; all times in seconds.
  void take(double all, double run, const std::function<double(int)>& waited, double gap = 0.001) {
    for (const double end = now_ + all; now_ < end;) {
      const int before = watch_.num_running();
      const double begin = now_ + gap;
      now_ = begin + run;
      watch_.note(begin, now_, waited(before));
      if (watch_.num_running() > before) ++num_trials_;
    }
  }

  int num_running() const { return watch_.num_running(); }
  int num_trials() const { return num_trials_; }

 private:
  CrowdWatch watch_;
  double now_ = 3600;  // seconds
  int num_trials_ = 0;
};

const auto kNone = [](int) { return 0.0; };
const auto kHalf = [](int) { return 0.0045; };  // of a run of 9 ms

TEST(CrowdWatch, AllThreadsRunOnCpusOfTheirOwn) {
  Runs runs(2);
  runs.take(10, 0.009, kNone);
  EXPECT_EQ(runs.num_running(), 2);
  int count = 0;  // what a system does: something short in every run, something longer at times
  runs.take(10, 0.009, [&count](int) { return ++count % 10 == 0 ? 0.003 : 0.0001; });
  EXPECT_EQ(runs.num_running(), 2);
  EXPECT_EQ(runs.num_trials(), 0);
}

TEST(CrowdWatch, OneIsLeftOutBesideNeighborsUntilTheyHaveGone) {
  Runs runs(2);
  runs.take(0.15, 0.009, kHalf);
  EXPECT_EQ(runs.num_running(), 1);
  runs.take(20, 0.009, kHalf);
  EXPECT_EQ(runs.num_running(), 1);
  EXPECT_EQ(runs.num_trials(), 0) << "where even one waits";
  runs.take(0.9, 0.009, kNone);
  EXPECT_EQ(runs.num_running(), 2);
}

// One neighbor leaves a CPU for one thread.
TEST(CrowdWatch, TrialsThatFailBecomeRare) {
  Runs runs(2);
  const auto of_two = [](int threads) { return threads == 2 ? 0.004 : 0; };
  runs.take(60, 0.009, of_two);
  EXPECT_GE(runs.num_trials(), 6);
  EXPECT_LE(runs.num_trials(), 12);
  runs.take(9, 0.009, kNone);
  EXPECT_EQ(runs.num_running(), 2);
}

TEST(CrowdWatch, AtMostHalfAreLeftOutOneAfterTheOther) {
  for (const auto& [threads, least] : {std::pair{16, 8}, {3, 2}, {1, 1}}) {
    Runs runs(threads);
    runs.take(0.15, 0.009, kHalf);
    EXPECT_EQ(runs.num_running(), std::max(threads - 1, least));
    runs.take(5, 0.009, kHalf);
    EXPECT_EQ(runs.num_running(), least);
    runs.take(3, 0.009, kNone);
    EXPECT_EQ(runs.num_running(), threads);
  }
}

TEST(CrowdWatch, ALongRunIsJudgedByItsLength) {
  Runs runs(2);
  runs.take(8, 2, [](int) { return 0.1; });
  EXPECT_EQ(runs.num_running(), 2);
  runs.take(2, 2, [](int) { return 1.0; });
  EXPECT_EQ(runs.num_running(), 1);
}

TEST(CrowdWatch, RunsFarApartSayNothing) {
  Runs runs(2);
  runs.take(20, 0.009, kHalf, 0.06);
  EXPECT_EQ(runs.num_running(), 2);
}

TEST(CrowdWatch, AddsUpHowLongAThreadWaitsForAnother) {
  const int64_t idle_before = waited_of_this_thread();
  int64_t lost = 0;
  std::thread([&lost] {
    const std::vector<int> one = {allowed_cpus().front()};
    fixtures::stay_on(one);
    const fixtures::BusyCpus neighbor(one);
    const int64_t before = waited_of_this_thread();
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (std::chrono::steady_clock::now() < end) {
    }
    lost = waited_of_this_thread() - before;
  }).join();
  EXPECT_GT(lost, 100'000'000) << "ns of half a second";
  EXPECT_LT(waited_of_this_thread() - idle_before, lost / 2) << "of all threads";
}

}  // namespace
}  // namespace medusa
