// Callers that take turns, whatever threads they come from.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace medusa {

/// Thread safety: yes.
class TurnsOfCallers {
 public:
  /// Ends when it is destroyed.
  class Turn {
   public:
    explicit Turn(TurnsOfCallers& turns) : turns_(turns), lock_(turns.mutex_) {
      turns_.owner_ = std::this_thread::get_id();
    }
    ~Turn() { turns_.owner_ = std::thread::id(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    TurnsOfCallers& turns_;
    std::lock_guard<std::mutex> lock_;
  };

  /// Waits for the turns of other threads.
  /// @param what        names the caller in the message: "Generator".
  /// @param shared      and what its callers share.
  /// @throws UserError  this thread has its turn already: a callback called back.
  [[nodiscard]] Turn take(const char* what, const char* shared = "model");

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
};

}  // namespace medusa
