// Stands in the place of mmap and munmap in the readers under test (linked with --wrap): a "mapped"
// file is a block of the heap that ends where the file ends. So ASan sees a reader that leaves the
// file by a byte, which the rest of a page would hide, and no page is mapped for each input.
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

extern "C" {
void* __wrap_mmap(void* address, size_t size, int protection, int flags, int file, off_t offset);
int __wrap_munmap(void* address, size_t size);
}

/// As base/file.cpp uses it: a whole file, to be read.
void* __wrap_mmap(void*, size_t size, int, int, int file, off_t offset) {
  void* memory = std::malloc(size);
  if (memory == nullptr) return MAP_FAILED;
  if (::pread(file, memory, size, offset) == static_cast<ssize_t>(size)) return memory;
  std::free(memory);
  return MAP_FAILED;
}

int __wrap_munmap(void* address, size_t) {
  std::free(address);
  return 0;
}
