#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "backbone/cpu/threads/thread_pool.h"
#include "base/process.h"
#include "tests/base/busy_cpus.h"

namespace medusa {
namespace {

TEST(ThreadPool, RunsOnceOnEveryThread) {
  for (const int num_threads : {1, 2, 5}) {
    ThreadPool pool(num_threads);
    for (int repetition = 0; repetition < 100; ++repetition) {
      std::vector<int> calls(static_cast<size_t>(num_threads), 0);
      int running = 0;
      pool.run([&](int thread) {
        ++calls[static_cast<size_t>(thread)];
        if (thread == 0) running = pool.num_running();
      });
      if (repetition == 0) {
        EXPECT_EQ(running, num_threads);
      }
      ASSERT_TRUE(2 * running >= num_threads && running <= num_threads) << running;
      for (int thread = 0; thread < num_threads; ++thread)
        EXPECT_EQ(calls[static_cast<size_t>(thread)], thread < running ? 1 : 0);
    }
  }
}

TEST(ThreadPool, BarrierShowsWhatOthersWroteBefore) {
  constexpr int kThreads = 3, kSteps = 2000;
  ThreadPool pool(kThreads);
  std::vector<int> values(kThreads, 0);  // not atomic: the barrier orders the accesses
  std::atomic<int> wrong{0};
  pool.run([&](int thread) {
    for (int step = 1; step <= kSteps; ++step) {
      values[static_cast<size_t>(thread)] = step;
      pool.barrier();
      for (const int value : values)
        if (value != step) ++wrong;
      pool.barrier();
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ThreadPool, WakesUpAfterSleeping) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  for (int repetition = 0; repetition < 3; ++repetition) {
    pool.run([&](int) { ++calls; });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // far longer than anyone spins
  }
  pool.run([&](int thread) {
    if (thread == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.barrier();  // thread 0 falls asleep here
    ++calls;
  });
  EXPECT_EQ(calls.load(), 8);
}

TEST(ThreadPool, AnExceptionReachesTheCallerAndThePoolLivesOn) {
  ThreadPool pool(3);
  for (int failing = 0; failing < 3; ++failing) {
    try {
      pool.run([&](int thread) {
        pool.barrier();
        if (thread == failing) throw std::invalid_argument("thread " + std::to_string(thread));
        pool.barrier();  // never complete
      });
      FAIL() << "no exception";
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(), "thread " + std::to_string(failing));
    }
    std::atomic<int> calls{0};
    pool.run([&](int) {
      pool.barrier();
      ++calls;
    });
    EXPECT_EQ(calls.load(), 3);
  }
}

TEST(ThreadPool, LeavesTheCallerOnTheCpusItFound) {
  const std::vector<int> before = allowed_cpus();
  ThreadPool pool(static_cast<int>(before.size()));  // one on each: pinned, where there are several
  EXPECT_EQ(allowed_cpus(), before);
  pool.run([](int) {});
  EXPECT_EQ(allowed_cpus(), before);
  EXPECT_THROW(pool.run([](int) { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(ThreadPool, DoesNotMoveACallerThatTheApplicationPinnedElsewhere) {
  const std::vector<int> cpus = allowed_cpus();
  ThreadPool pool(static_cast<int>(cpus.size()));
  const std::vector<int> elsewhere = {cpus.back()};  // not the first, which is thread 0's
  std::thread([&] {
    fixtures::stay_on(elsewhere);
    pool.run([&](int thread) {
      if (thread == 0) {
        EXPECT_EQ(allowed_cpus(), elsewhere);
      }
    });
  }).join();
}

TEST(ThreadPool, RunsFewerThreadsBesideBusyNeighbors) {
  std::vector<int> cpus = allowed_cpus();
  if (cpus.size() > 2) cpus.erase(cpus.begin() + 2, cpus.end());
  std::thread([&] {
    fixtures::stay_on(cpus);
    ThreadPool pool(2);
    const fixtures::BusyCpus neighbors(cpus);
    int running = 2;
    const auto now = [] { return std::chrono::steady_clock::now(); };
    for (const auto end = now() + std::chrono::seconds(10); running == 2 && now() < end;)
      pool.run([&](int thread) {
        if (thread == 0) running = pool.num_running();
        const auto done = now() + std::chrono::milliseconds(5);
        while (now() < done) {
        }
      });
    EXPECT_EQ(running, 1);
  }).join();
}

}  // namespace
}  // namespace medusa
