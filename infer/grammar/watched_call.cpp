#include "infer/grammar/watched_call.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"

namespace medusa {
namespace {

using Duration = std::chrono::nanoseconds;

constexpr int kMostLeftBehind = 8;
constexpr auto kBetweenLooks = std::chrono::milliseconds(10);

std::atomic<int> left_behind{0};

/// The destructors of static objects would take what is still in use.
void end_at_once(int status, void*) {
  if (left_behind == 0) return;
  std::fflush(nullptr);
  std::_Exit(status);
}

/// What a helper and its caller share.
struct Helped {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> work;  // empty: none waits
  std::exception_ptr failure;
  bool is_done = false, is_over = false, is_left = false;
  pid_t thread_id = 0;
};

Duration time_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
}

void help(const std::shared_ptr<Helped>& shared) {
  std::unique_lock lock(shared->mutex);
  shared->thread_id = ::gettid();
  while (true) {
    shared->changed.wait(lock, [&] { return shared->work || shared->is_over; });
    if (!shared->work) return;
    const std::function<void()> work = std::exchange(shared->work, nullptr);
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    shared->failure = std::move(failure);
    shared->is_done = true;
    shared->changed.notify_all();
    if (!shared->is_left) continue;
    --left_behind;
    return;
  }
}

class Helper {
 public:
  Helper() : thread_(help, shared_) {}
  ~Helper() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->is_over = true;
    }
    shared_->changed.notify_all();
    thread_.join();
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  bool is_left() const { return !thread_.joinable(); }

  std::optional<Duration> run(std::function<void()> work, Duration limit) {
    clockid_t clock = 0;
    pthread_getcpuclockid(thread_.native_handle(), &clock);
    const Duration began = time_of(clock);
    std::unique_lock lock(shared_->mutex);
    shared_->work = std::move(work);
    shared_->is_done = false;
    shared_->changed.notify_all();
    while (!shared_->changed.wait_for(lock, kBetweenLooks, [&] { return shared_->is_done; })) {
      if (time_of(clock) - began < limit) continue;
      leave();
      return std::nullopt;
    }
    if (shared_->failure) std::rethrow_exception(std::exchange(shared_->failure, nullptr));
    return time_of(clock) - began;
  }

 private:
  /// With the lock.
  void leave() {
    static const int registered = ::on_exit(end_at_once, nullptr);
    static_cast<void>(registered);
    shared_->is_left = true;
    ++left_behind;
    constexpr int kLowest = 19;
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(shared_->thread_id), kLowest);
    thread_.detach();
  }

  std::shared_ptr<Helped> shared_ = std::make_shared<Helped>();
  std::thread thread_;
};

}  // namespace

std::optional<Duration> run_watched(std::function<void()> work, Duration limit) {
  if (left_behind >= kMostLeftBehind)
    throw UserError(
        "the grammars of earlier requests still compute, expected fewer that take so long; try "
        "again in a minute, or without a grammar");
  thread_local std::unique_ptr<Helper> helper;
  if (!helper || helper->is_left()) helper = std::make_unique<Helper>();
  return helper->run(std::move(work), limit);
}

int num_left_behind() { return left_behind; }

}  // namespace medusa
