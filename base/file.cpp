#include "base/file.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

constexpr const char* kStandardInput = "-";

[[noreturn]] void fail_to_read(const fs::path& path, int error) {
  if (error == ENOENT)
    throw UserError(fmt::format("{}: no such file; check the path", path.string()));
  throw UserError(fmt::format("{}: cannot be read ({}); check the path and its permissions",
                              path.string(), std::strerror(error)));
}

[[noreturn]] void refuse_kind(const fs::path& path, mode_t mode) {
  if (S_ISDIR(mode))
    throw UserError(fmt::format("{}: is a folder, expected a file; check the path", path.string()));
  throw UserError(
      fmt::format("{}: is {}, expected a regular file; save what it gives to a file and name that",
                  path.string(), file_type(mode)));
}

[[noreturn]] void refuse_size(const fs::path& path, size_t most) {
  throw UserError(
      fmt::format("{}: holds more than {} bytes, expected at most these; split it into several "
                  "files, or check that it is the file that is meant",
                  path.string(), most));
}

struct stat status_of(const Descriptor& file, const fs::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_to_read(path, errno);
  return status;
}

/// Opened without waiting for anybody: a FIFO has no writer yet, a device no carrier.
class OpenedToRead {
 public:
  explicit OpenedToRead(const fs::path& path)
      : file_(path, O_RDONLY | O_NONBLOCK | O_NOCTTY), path_(path) {
    if (file_.get() >= 0) {
      status_ = status_of(file_, path);
      return;
    }
    const int error = errno;  // ENXIO: a socket, or a device that nothing is behind
    if (error == ENXIO && ::stat(path.c_str(), &status_) == 0) return;
    fail_to_read(path, error);
  }

  int get() const { return file_.get(); }
  mode_t mode() const { return status_.st_mode; }
  size_t size() const { return static_cast<size_t>(status_.st_size); }

  void expect_regular() const {
    if (!S_ISREG(mode())) refuse_kind(path_, mode());
  }
  void expect_at_most(size_t most) const {
    expect_regular();
    if (size() > most) refuse_size(path_, most);
  }

 private:
  Descriptor file_;
  fs::path path_;
  struct stat status_ {};
};

/// @param waits  for what another program has yet to write.
std::string read_all(int descriptor, const fs::path& path, size_t most, bool waits) {
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    if (waits) {
      pollfd readable{descriptor, POLLIN, 0};
      while (::poll(&readable, 1, 0) <= 0) wait_a_moment(descriptor, POLLIN);
    }
    const ssize_t got = ::read(descriptor, buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || (waits && errno == EAGAIN))) continue;
    if (got < 0) fail_to_read(path, errno);
    if (got == 0) return bytes;
    if (bytes.size() + static_cast<size_t>(got) > most) refuse_size(path, most);
    bytes.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace

std::string read_file(const fs::path& path, size_t most) {
  const OpenedToRead file(path);
  file.expect_at_most(most);
  return read_all(file.get(), path, most, /*waits=*/false);
}

std::string read_beginning(const fs::path& path, size_t most) {
  const OpenedToRead file(path);
  file.expect_regular();
  std::string bytes(most, '\0');
  size_t size = 0;
  while (size < most) {
    const ssize_t got = ::read(file.get(), bytes.data() + size, most - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_to_read(path, errno);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

std::string read_file_or_stream(const fs::path& path) {
  if (path == kStandardInput)
    return read_all(STDIN_FILENO, "standard input", kMostFileBytes, /*waits=*/true);
  const OpenedToRead file(path);
  const bool is_fifo = S_ISFIFO(file.mode());
  if (!is_fifo) file.expect_at_most(kMostFileBytes);
  return read_all(file.get(), path, kMostFileBytes, /*waits=*/is_fifo);
}

void forget_pages(std::span<const uint8_t> mapped) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(mapped.data());
  const size_t begin = (address + page - 1) / page * page - address;
  const uintptr_t end_page = (address + mapped.size()) / page * page;
  // A private mapping that was never written to: the pages come back from the file unchanged.
  if (address + begin < end_page)
    ::madvise(const_cast<uint8_t*>(mapped.data()) + begin, end_page - address - begin,
              MADV_DONTNEED);
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  const OpenedToRead file(path);
  file.expect_regular();
  if (file.size() == 0)
    throw UserError(fmt::format("{}: the file is empty; copy or download it again", path.string()));
  size_ = file.size();
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) fail_to_read(path, errno);
  data_ = static_cast<const uint8_t*>(mapped);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<uint8_t*>(data_), size_);
}

}  // namespace medusa
