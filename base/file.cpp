#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

/// Closes a file descriptor at the end of its scope.
class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags, mode_t mode = 0)
      : fd_(::open(path.c_str(), flags, mode)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail_to_read(const fs::path& path, int error) {
  if (error == ENOENT)
    throw UserError(fmt::format("{}: no such file; check the path", path.string()));
  throw UserError(fmt::format("{}: cannot be read ({}); check the path and its permissions",
                              path.string(), std::strerror(error)));
}

[[noreturn]] void fail_to_write(const fs::path& path, int error) {
  if (error == ENOSPC || error == EDQUOT)
    throw UserError(fmt::format(
        "{}: the disk is full; free some space or choose another output folder, then run again",
        path.string()));
  throw UserError(
      fmt::format("{}: cannot be written ({}); choose an output folder you may write to",
                  path.string(), std::strerror(error)));
}

void sync_to_disk(const fs::path& path) {
  const Descriptor file(path, O_RDONLY | O_CLOEXEC);
  if (file.get() < 0 || ::fsync(file.get()) != 0) fail_to_write(path, errno);
}

}  // namespace

std::string read_file(const fs::path& path) {
  if (fs::is_directory(path))
    throw UserError(fmt::format("{}: is a folder, expected a file; check the path", path.string()));
  const Descriptor file(path, O_RDONLY | O_CLOEXEC);
  if (file.get() < 0) fail_to_read(path, errno);
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_to_read(path, errno);
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(got));
  }
}

void write_all(int descriptor, std::string_view bytes, const fs::path& name) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_to_write(name, errno);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
}

void replace_file(const fs::path& path, const std::function<void(const fs::path&)>& write) {
  fs::path temporary = path;
  temporary += fmt::format(".part-{}", ::getpid());
  try {
    write(temporary);
    sync_to_disk(temporary);
    std::error_code error;
    fs::rename(temporary, path, error);
    if (error) fail_to_write(path, error.value());
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
  const fs::path folder = path.parent_path();
  sync_to_disk(folder.empty() ? fs::path(".") : folder);
}

void write_file(const fs::path& path, std::string_view bytes) {
  write_file(path, std::span(&bytes, 1));
}

void write_file(const fs::path& path, std::span<const std::string_view> parts) {
  replace_file(path, [&](const fs::path& temporary) {
    const Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file.get() < 0) fail_to_write(path, errno);
    for (const std::string_view part : parts) write_all(file.get(), part, path);
  });
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_directory(path, ignored))
    throw UserError(fmt::format("{}: is a file, expected a folder; choose another output folder",
                                path.string()));
  if (error) fail_to_write(path, error.value());
  if (::access(path.c_str(), W_OK | X_OK) != 0) fail_to_write(path, errno);
}

void forget_pages(std::span<const uint8_t> mapped) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(mapped.data());
  const uintptr_t begin = (address + page - 1) / page * page;
  const uintptr_t end = (address + mapped.size()) / page * page;
  // A private mapping that was never written to: the pages come back from the file unchanged.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  if (fs::is_directory(path))
    throw UserError(fmt::format("{}: is a folder, expected a file; check the path", path.string()));
  const Descriptor file(path, O_RDONLY | O_CLOEXEC);
  if (file.get() < 0) fail_to_read(path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_to_read(path, errno);
  if (status.st_size == 0)
    throw UserError(fmt::format("{}: the file is empty; copy or download it again", path.string()));
  size_ = static_cast<size_t>(status.st_size);
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
