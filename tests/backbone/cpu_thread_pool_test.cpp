#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "backbone/cpu/threads/thread_pool.h"

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

/// The CPUs that the calling thread may run on.
cpu_set_t affinity() {
  cpu_set_t cpus;
  EXPECT_EQ(sched_getaffinity(0, sizeof cpus, &cpus), 0);
  return cpus;
}

TEST(ThreadPool, LeavesTheCallerOnTheCpusItFound) {
  const cpu_set_t before = affinity();
  ThreadPool pool(CPU_COUNT(&before));  // one on each: pinned, where there are several
  const auto expect_before = [&before] {
    const cpu_set_t now = affinity();
    EXPECT_TRUE(CPU_EQUAL(&now, &before));
  };
  expect_before();
  pool.run([](int) {});
  expect_before();
  EXPECT_THROW(pool.run([](int) { throw std::runtime_error("no"); }), std::runtime_error);
  expect_before();
}

TEST(ThreadPool, DoesNotMoveACallerThatTheApplicationPinnedElsewhere) {
  const cpu_set_t before = affinity();
  ThreadPool pool(CPU_COUNT(&before));
  int last = CPU_SETSIZE - 1;  // not the first, which is thread 0's
  while (!CPU_ISSET(last, &before)) --last;
  cpu_set_t elsewhere;
  CPU_ZERO(&elsewhere);
  CPU_SET(last, &elsewhere);
  std::thread([&] {
    ASSERT_EQ(sched_setaffinity(0, sizeof elsewhere, &elsewhere), 0);
    pool.run([&](int thread) {
      if (thread != 0) return;
      const cpu_set_t now = affinity();
      EXPECT_TRUE(CPU_EQUAL(&now, &elsewhere));
    });
  }).join();
}

}  // namespace
}  // namespace medusa
