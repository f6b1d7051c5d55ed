#include "tests/device/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tests/device/fake_device.h"

namespace medusa::fixtures {
namespace {

struct Block {
  size_t size = 0;        // bytes, whole pages
  int holders = 0;        // OpenMemory objects
  bool is_fresh = false;  // nobody has opened it yet
};

/// All blocks there are. Never destroyed: tensors in static variables may outlive it.
struct Blocks {
  std::mutex mutex;
  std::map<void*, Block> by_address;
  std::map<size_t, std::vector<void*>> free;  // closed, by size: to map anew takes longer
  c10::CachingAllocator::Stat bytes;          // that are taken
};

Blocks& blocks() {
  static auto* all = new Blocks;
  return *all;
}

void protect(void* address, size_t size, int protection) {
  const int failed = ::mprotect(address, size, protection);
  MEDUSA_ASSERT(failed == 0, size, errno);
}

void free_block(void* address) {
  if (address == nullptr) return;
  Blocks& all = blocks();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.by_address.find(address);
  if (found->second.holders > 0) protect(address, found->second.size, PROT_NONE);
  all.free[found->second.size].push_back(address);
  all.bytes.decrease(found->second.size);
  all.by_address.erase(found);
}

void* take_block(size_t size) {
  Blocks& all = blocks();
  const std::scoped_lock lock(all.mutex);
  std::vector<void*>& free = all.free[size];
  void* address = nullptr;
  if (free.empty()) {
    address = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MEDUSA_ASSERT(address != MAP_FAILED, size, errno);
  } else {
    address = free.back();
    free.pop_back();
  }
  all.by_address[address] = {size, 0, true};
  all.bytes.increase(size);
  return address;
}

class GuardedAllocator : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t num_bytes) override {
    void* address = nullptr;
    if (num_bytes > 0) {
      const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
      address = take_block((num_bytes + page - 1) / page * page);
    }
    return {address, address, &free_block, fake_device()};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

  void copy_data(void* to, const void* from, size_t num_bytes) const override {
    OpenMemory memory;
    memory.open(to);
    memory.open(const_cast<void*>(from));
    std::memcpy(to, from, num_bytes);
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t /*pool*/) override {}
  void recordStream(const c10::DataPtr& /*block*/, c10::Stream /*stream*/) override {}

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex /*device*/) override {
    const std::scoped_lock lock(blocks().mutex);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0] = blocks().bytes;  // of all kinds
    return stats;
  }

  void resetAccumulatedStats(c10::DeviceIndex /*device*/) override {
    const std::scoped_lock lock(blocks().mutex);
    blocks().bytes.reset_accumulated();
  }

  void resetPeakStats(c10::DeviceIndex /*device*/) override {
    const std::scoped_lock lock(blocks().mutex);
    blocks().bytes.reset_peak();
  }
};

}  // namespace

c10::DeviceAllocator& guarded_allocator() {
  static auto* allocator = new GuardedAllocator;
  return *allocator;
}

void OpenMemory::open(void* block) {
  if (block == nullptr) return;
  Blocks& all = blocks();
  const std::scoped_lock lock(all.mutex);
  Block& found = all.by_address.at(block);
  if (found.holders++ == 0) protect(block, found.size, PROT_READ | PROT_WRITE);
  if (std::exchange(found.is_fresh, false)) std::memset(block, 0xFF, found.size);
  held_.push_back(block);
}

OpenMemory::~OpenMemory() {
  Blocks& all = blocks();
  const std::scoped_lock lock(all.mutex);
  for (void* block : held_) {
    // Freed while it was held: an op that gave its result another block.
    const auto found = all.by_address.find(block);
    if (found == all.by_address.end()) continue;
    if (--found->second.holders == 0) protect(block, found->second.size, PROT_NONE);
  }
}

}  // namespace medusa::fixtures
