#include "tests/base/allocation_peak.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace medusa::fixtures {
namespace {

std::atomic<size_t> now{0}, peak{0};

void* take_or_null(size_t size) noexcept {
  void* memory = std::malloc(size);
  if (memory == nullptr) return nullptr;
  const size_t held = now += malloc_usable_size(memory);
  for (size_t seen = peak; held > seen && !peak.compare_exchange_weak(seen, held);) {
  }
  return memory;
}

void* take(size_t size) {
  void* memory = take_or_null(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void give_back(void* memory) {
  if (memory == nullptr) return;
  now -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

size_t allocated_bytes() { return now; }
void reset_peak() { peak = now.load(); }
size_t peak_bytes() { return peak; }

}  // namespace medusa::fixtures

void* operator new(size_t size) { return medusa::fixtures::take(size); }
void* operator new[](size_t size) { return medusa::fixtures::take(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return medusa::fixtures::take_or_null(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return medusa::fixtures::take_or_null(size);
}
void operator delete(void* memory) noexcept { medusa::fixtures::give_back(memory); }
void operator delete[](void* memory) noexcept { medusa::fixtures::give_back(memory); }
void operator delete(void* memory, size_t) noexcept { medusa::fixtures::give_back(memory); }
void operator delete[](void* memory, size_t) noexcept { medusa::fixtures::give_back(memory); }
