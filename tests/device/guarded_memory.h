// Memory of the fake device: pages that the host may touch only while an OpenMemory holds them, so
// that a read through data_ptr ends the program as it does with a GPU's memory.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <vector>

namespace medusa::fixtures {

/// Gives blocks of whole pages, closed and full of NaNs (in every floating-point type), and counts
/// their bytes as a GPU's allocator does.
c10::DeviceAllocator& guarded_allocator();

/// Opens blocks of the allocator for the host, and closes what nobody else holds when it goes.
///
/// Thread safety: any threads may hold the same blocks.
class OpenMemory {
 public:
  OpenMemory() = default;
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
  ~OpenMemory();

  /// @param block  what the allocator gave, or null, which is a block without bytes.
  void open(void* block);

 private:
  std::vector<void*> held_;
};

}  // namespace medusa::fixtures
