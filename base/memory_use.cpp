#include "base/memory_use.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>

namespace medusa {

int64_t memory_in_use() {
  std::ifstream in("/proc/self/statm");  // in pages: all, resident, …
  int64_t all = 0, resident = 0;
  in >> all >> resident;
  return in ? resident * sysconf(_SC_PAGESIZE) : 0;
}

void give_back_freed_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

std::string memory_text(int64_t bytes) {
  return bytes == 0 ? "-" : fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace medusa
