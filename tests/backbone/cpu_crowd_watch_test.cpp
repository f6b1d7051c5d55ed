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

  /// @param preemptions  of a run, by its number of threads.
  /// @param gap          before each run; all times in seconds.
  void take(double all, double run, const std::function<int64_t(int)>& preemptions,
            double gap = 0.001) {
    for (const double end = now_ + all; now_ < end;) {
      const int before = watch_.num_running();
      const double begin = now_ + gap;
      now_ = begin + run;
      watch_.note(begin, now_, preemptions(before));
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

const auto kNone = [](int) { return int64_t{0}; };
const auto kOne = [](int) { return int64_t{1}; };

TEST(CrowdWatch, AllThreadsRunOnCpusOfTheirOwn) {
  Runs runs(2);
  runs.take(10, 0.009, kNone);
  EXPECT_EQ(runs.num_running(), 2);
  int count = 0;  // what a system does now and then
  runs.take(10, 0.009, [&count](int) { return int64_t{++count % 10 == 0}; });
  EXPECT_EQ(runs.num_running(), 2);
  EXPECT_EQ(runs.num_trials(), 0);
}

TEST(CrowdWatch, OneIsLeftOutBesideNeighborsUntilTheyHaveGone) {
  Runs runs(2);
  runs.take(0.15, 0.009, kOne);
  EXPECT_EQ(runs.num_running(), 1);
  runs.take(20, 0.009, kOne);
  EXPECT_EQ(runs.num_running(), 1);
  EXPECT_EQ(runs.num_trials(), 0) << "where even one is preempted";
  runs.take(0.9, 0.009, kNone);
  EXPECT_EQ(runs.num_running(), 2);
}

// One neighbor leaves a CPU for one thread.
TEST(CrowdWatch, TrialsThatFailBecomeRare) {
  Runs runs(2);
  const auto of_two = [](int threads) { return int64_t{threads == 2}; };
  runs.take(60, 0.009, of_two);
  EXPECT_GE(runs.num_trials(), 6);
  EXPECT_LE(runs.num_trials(), 12);
  runs.take(9, 0.009, kNone);
  EXPECT_EQ(runs.num_running(), 2);
}

TEST(CrowdWatch, AtMostHalfAreLeftOutOneAfterTheOther) {
  for (const auto& [threads, least] : {std::pair{16, 8}, {3, 2}, {1, 1}}) {
    Runs runs(threads);
    runs.take(0.15, 0.009, kOne);
    EXPECT_EQ(runs.num_running(), std::max(threads - 1, least));
    runs.take(5, 0.009, kOne);
    EXPECT_EQ(runs.num_running(), least);
    runs.take(3, 0.009, kNone);
    EXPECT_EQ(runs.num_running(), threads);
  }
}

TEST(CrowdWatch, ALongRunIsJudgedByItsLength) {
  Runs runs(2);
  runs.take(8, 2, [](int) { return int64_t{20}; });
  EXPECT_EQ(runs.num_running(), 2);
  runs.take(2, 2, [](int) { return int64_t{200}; });
  EXPECT_EQ(runs.num_running(), 1);
}

TEST(CrowdWatch, RunsFarApartSayNothing) {
  Runs runs(2);
  runs.take(20, 0.009, kOne, 0.06);
  EXPECT_EQ(runs.num_running(), 2);
}

TEST(CrowdWatch, CountsWhatAThreadLosesToAnother) {
  const int64_t waiting_before = preemptions_of_this_thread();
  int64_t lost = 0;
  std::thread([&lost] {
    const std::vector<int> one = {allowed_cpus().front()};
    fixtures::stay_on(one);
    const fixtures::BusyCpus neighbor(one);
    const int64_t before = preemptions_of_this_thread();
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (std::chrono::steady_clock::now() < end) {
    }
    lost = preemptions_of_this_thread() - before;
  }).join();
  EXPECT_GE(lost, 5);
  EXPECT_LT(preemptions_of_this_thread() - waiting_before, lost) << "of all threads";
}

}  // namespace
}  // namespace medusa
