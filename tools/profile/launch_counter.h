// What the host starts on a device: kernels of ours, and ops of LibTorch, which start their own.
#pragma once

#include <cstdint>

namespace medusa {

struct Launches {
  int64_t kernels = 0;  // ours
  int64_t ops = 0;      // of LibTorch, those that ops call and views included
};

/// Counts from its making on, ops of the calling thread.
class LaunchCounter {
 public:
  LaunchCounter();
  ~LaunchCounter();
  LaunchCounter(const LaunchCounter&) = delete;
  LaunchCounter& operator=(const LaunchCounter&) = delete;

  Launches count() const;

 private:
  int64_t kernels_before_, ops_before_;
  uint64_t callback_;
};

}  // namespace medusa
