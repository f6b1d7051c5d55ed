// How many kernels of ours this process has started.
#pragma once

#include <atomic>
#include <cstdint>

namespace medusa {

/// Recorded ones count when they are recorded, not when their graph is replayed. Any thread.
inline std::atomic<int64_t> num_started_kernels{0};

}  // namespace medusa
