#include "backbone/cpu/threads/huge_pages.h"

#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>

#include "base/check.h"

namespace medusa {
namespace {

constexpr int64_t kPage = int64_t{2} << 20, kRegion = 16 * kPage, kAlignment = 64;

constexpr int64_t round_up(int64_t size, int64_t to) { return (size + to - 1) / to * to; }

/// Some pages that were asked for together.
class Region {
 public:
  explicit Region(int64_t size) : size_(size), mapped_size_(size + kPage) {
    mapped_ = mmap(nullptr, static_cast<size_t>(mapped_size_), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) throw std::bad_alloc();
    begin_ = reinterpret_cast<char*>(
        round_up(static_cast<int64_t>(reinterpret_cast<intptr_t>(mapped_)), kPage));
    madvise(begin_, static_cast<size_t>(size), MADV_HUGEPAGE);  // if refused, small pages do
  }
  ~Region() { munmap(mapped_, static_cast<size_t>(mapped_size_)); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  /// Null if no such piece is left.
  char* take(int64_t bytes) {
    if (used_ + bytes > size_) return nullptr;
    char* piece = begin_ + used_;
    used_ += round_up(bytes, kAlignment);
    return piece;
  }

 private:
  int64_t size_, mapped_size_, used_ = 0;
  void* mapped_ = nullptr;
  char* begin_ = nullptr;
};

}  // namespace

at::Tensor huge_page_bytes(int64_t bytes) {
  MEDUSA_ASSERT(bytes >= 0, bytes);
  static std::mutex guard;
  static std::weak_ptr<Region> latest;  // weights packed later fill it up, but do not keep it
  const std::lock_guard lock(guard);
  std::shared_ptr<Region> region = latest.lock();
  char* data = region ? region->take(bytes) : nullptr;
  if (data == nullptr) {
    region = std::make_shared<Region>(std::max(kRegion, round_up(bytes, kPage)));
    latest = region;
    data = region->take(bytes);
  }
  return at::from_blob(
      data, {bytes}, [region](void*) {}, at::kByte);
}

}  // namespace medusa
