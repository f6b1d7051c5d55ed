#include "backbone/cpu/threads/thread_pool.h"

#include <sched.h>

#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/elapsed.h"
#include "base/process.h"

namespace medusa {
namespace {

// A pause takes about 50 ns on the processors that these pools are for. Where each thread has a CPU
// to itself: about a millisecond, longer than the gap between two passes of a step, since waking a
// sleeping CPU of a virtual machine costs more than the work it waits for (measured: a step of 16
// rows three times as long with a tenth of this). Else 50 to 100 µs, which others may need.
constexpr int kLongSpins = 20000, kShortSpins = 1500;

/// Waits until done(word): spins first, then sleeps until someone notifies.
template <typename Done>
void wait_until(const std::atomic<uint32_t>& word, int spins, Done done) {
  for (int i = 0; i < spins; ++i) {
    if (done(word.load(std::memory_order_acquire))) return;
    __builtin_ia32_pause();
  }
  for (;;) {
    const uint32_t seen = word.load(std::memory_order_acquire);
    if (done(seen)) return;
    word.wait(seen, std::memory_order_acquire);
  }
}

/// The process's CPUs if they are as many as the threads; else none.
std::vector<int> cpus_for(int num_threads) {
  std::vector<int> cpus = allowed_cpus();
  if (cpus.size() != static_cast<size_t>(num_threads)) cpus.clear();
  return cpus;
}

/// Keeps the calling thread on one CPU for a while, if it may run there: an application may have
/// pinned it elsewhere.
class PinnedThread {
 public:
  PinnedThread(const std::vector<int>& cpus, int thread) {
    if (cpus.empty() || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    const int cpu = cpus[static_cast<size_t>(thread)];
    if (!CPU_ISSET(cpu, &before_)) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pinned_ = sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~PinnedThread() {
    if (pinned_) sched_setaffinity(0, sizeof before_, &before_);
  }
  PinnedThread(const PinnedThread&) = delete;
  PinnedThread& operator=(const PinnedThread&) = delete;

 private:
  cpu_set_t before_{};
  bool pinned_ = false;
};

}  // namespace

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads),
      cpus_(num_threads > 1 ? cpus_for(num_threads) : std::vector<int>{}),
      crowd_(num_threads),
      num_running_(num_threads) {
  MEDUSA_ASSERT(num_threads >= 1, num_threads);
  for (int thread = 1; thread < num_threads; ++thread)
    workers_.emplace_back([this, thread] { work(thread); });
}

int ThreadPool::spins() const { return cpus_.empty() ? kShortSpins : kLongSpins; }

ThreadPool::~ThreadPool() {
  stop_.store(true);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_task(Task task, const void* context) {
  const std::lock_guard lock(one_run_);
  const double begin = seconds_now();
  num_running_ = crowd_.num_running();
  task_ = task;
  context_ = const_cast<void*>(context);  // handed back to the trampoline, which knows its type
  error_ = nullptr;
  broken_.store(false, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  waited_.store(0, std::memory_order_relaxed);
  if (num_running_ > 1)
    run_together();
  else
    execute(0);  // wherever the system lets the caller run
  crowd_.note(begin, seconds_now(), static_cast<double>(waited_.load()) * 1e-9);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::run_together() {
  const PinnedThread pinned(cpus_, 0);
  running_.store(static_cast<uint32_t>(num_threads_ - 1), std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  execute(0);
  wait_until(running_, spins(), [](uint32_t running) { return running == 0; });
}

void ThreadPool::work(int thread) {
  const PinnedThread pinned(cpus_, thread);
  for (uint32_t last = 0;;) {
    wait_until(epoch_, spins(), [last](uint32_t epoch) { return epoch != last; });
    ++last;  // run() waits for every worker, so no epoch is missed
    if (stop_.load()) return;
    if (thread < num_running_) execute(thread);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

void ThreadPool::execute(int thread) {
  const int64_t before = waited_of_this_thread();
  try {
    task_(context_, thread);
  } catch (...) {
    leave_by_exception();
  }
  if (const int64_t more = waited_of_this_thread() - before; more > 0)
    waited_.fetch_add(more, std::memory_order_relaxed);
}

void ThreadPool::leave_by_exception() {
  {
    const std::lock_guard lock(error_guard_);
    if (!error_) error_ = std::current_exception();
  }
  // The others may wait at a barrier that this thread will not reach. First broken_, then the new
  // generation: who sees the new one sees broken_ too.
  broken_.store(true, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_acq_rel);
  generation_.notify_all();
}

void ThreadPool::barrier() {
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  if (!broken_.load(std::memory_order_acquire)) {
    const uint32_t before = arrived_.fetch_add(1, std::memory_order_acq_rel);
    if (before + 1 == static_cast<uint32_t>(num_running_)) {
      arrived_.store(0, std::memory_order_relaxed);
      generation_.fetch_add(1, std::memory_order_acq_rel);
      generation_.notify_all();
    } else {
      wait_until(generation_, spins(), [generation](uint32_t now) { return now != generation; });
    }
  }
  if (broken_.load(std::memory_order_acquire))
    throw std::runtime_error("another thread of the pool failed");  // the first error is reported
}

}  // namespace medusa
