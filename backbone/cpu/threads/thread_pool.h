// Threads that run short functions together, hundreds of times a second, with barriers inside.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "backbone/cpu/threads/crowd_watch.h"

namespace medusa {

/// A fixed number of threads; the caller of run() is thread 0. Who waits spins for a while and then
/// sleeps: a hot start costs about a microsecond. Beside busy processes fewer of them run
/// (crowd_watch.h): with all of them each barrier would cost a time slice of the scheduler.
///
/// A pool as large as the process's set of CPUs keeps each thread on one of them: threads that wake
/// each other this often are else drawn to one CPU and take turns there (measured: a step three
/// times as long). The caller stays on its CPU within run() only, and where the application lets it
/// run there.
///
/// Thread safety: run() may be called from any thread, one runs at a time; not from inside run().
class ThreadPool {
 public:
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }  // at most

  /// Inside run(): threads that take part. Fewer than all where other processes want the CPUs.
  int num_running() const { return num_running_; }

  /// Calls function(thread) once on every thread, 0 <= thread < num_running(), and waits for all.
  /// The first exception that a call throws reaches the caller; the pool can be used again.
  template <typename Function>
  void run(Function&& function) {
    run_task(
        [](void* context, int thread) {
          (*static_cast<std::remove_reference_t<Function>*>(context))(thread);
        },
        &function);
  }

  /// Only inside run(), by every thread equally often: returns when all have come. What they wrote
  /// before is visible after. Throws when another thread's function has thrown.
  void barrier();

 private:
  using Task = void (*)(void* context, int thread);

  void run_task(Task task, const void* context);
  void run_together();
  void work(int thread);
  void execute(int thread);
  int spins() const;
  void leave_by_exception();

  const int num_threads_;
  const std::vector<int> cpus_;  // one for each thread, or empty
  std::mutex one_run_;
  CrowdWatch crowd_;
  int num_running_;
  std::atomic<int64_t> waited_{0};  // nanoseconds that the threads waited for a CPU in this run
  Task task_ = nullptr;
  void* context_ = nullptr;
  std::exception_ptr error_;
  std::mutex error_guard_;
  std::atomic<bool> stop_{false}, broken_{false};
  // Each on its own cache line: they are written by different threads at different times.
  alignas(64) std::atomic<uint32_t> epoch_{0};       // counts run()s
  alignas(64) std::atomic<uint32_t> running_{0};     // workers that have not finished this run
  alignas(64) std::atomic<uint32_t> arrived_{0};     // threads at the barrier
  alignas(64) std::atomic<uint32_t> generation_{0};  // counts barriers passed
  std::vector<std::thread> workers_;
};

}  // namespace medusa
