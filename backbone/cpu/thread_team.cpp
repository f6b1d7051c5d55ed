#include "backbone/cpu/thread_team.h"

#include <ATen/Parallel.h>

#include <stdexcept>
#include <utility>

#include "base/check.h"

namespace medusa {
namespace {

// A pause takes about 50 ns on the processors that these teams are for: 50 to 100 µs altogether,
// longer than the longest gap between two barriers of a step, shorter than a time slice.
constexpr int kSpins = 1500;

/// Waits until done(word): spins first, then sleeps until someone notifies.
template <typename Done>
void wait_until(const std::atomic<uint32_t>& word, Done done) {
  for (int i = 0; i < kSpins; ++i) {
    if (done(word.load(std::memory_order_acquire))) return;
    __builtin_ia32_pause();
  }
  for (;;) {
    const uint32_t seen = word.load(std::memory_order_acquire);
    if (done(seen)) return;
    word.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace

ThreadTeam::ThreadTeam(int num_threads) : num_threads_(num_threads) {
  MEDUSA_ASSERT(num_threads >= 1, num_threads);
  for (int thread = 1; thread < num_threads; ++thread)
    workers_.emplace_back([this, thread] { work(thread); });
}

ThreadTeam::~ThreadTeam() {
  stop_.store(true);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadTeam::run_task(Task task, const void* context) {
  const std::lock_guard lock(one_run_);
  task_ = task;
  context_ = const_cast<void*>(context);  // handed back to the trampoline, which knows its type
  error_ = nullptr;
  broken_.store(false, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  running_.store(static_cast<uint32_t>(num_threads_ - 1), std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  execute(0);
  wait_until(running_, [](uint32_t running) { return running == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadTeam::work(int thread) {
  for (uint32_t last = 0;;) {
    wait_until(epoch_, [last](uint32_t epoch) { return epoch != last; });
    ++last;  // run() waits for every worker, so no epoch is missed
    if (stop_.load()) return;
    execute(thread);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

void ThreadTeam::execute(int thread) {
  try {
    task_(context_, thread);
  } catch (...) {
    leave_by_exception();
  }
}

void ThreadTeam::leave_by_exception() {
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

void ThreadTeam::barrier() {
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  if (!broken_.load(std::memory_order_acquire)) {
    const uint32_t before = arrived_.fetch_add(1, std::memory_order_acq_rel);
    if (before + 1 == static_cast<uint32_t>(num_threads_)) {
      arrived_.store(0, std::memory_order_relaxed);
      generation_.fetch_add(1, std::memory_order_acq_rel);
      generation_.notify_all();
    } else {
      wait_until(generation_, [generation](uint32_t now) { return now != generation; });
    }
  }
  if (broken_.load(std::memory_order_acquire))
    throw std::runtime_error("another thread of the team failed");  // the first error is reported
}

std::shared_ptr<ThreadTeam> shared_team() {
  static const auto team = std::make_shared<ThreadTeam>(at::get_num_threads());
  return team;
}

}  // namespace medusa
