// The writing half of base/file.h, and base/durable_file.h.
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/durable_file.h"
#include "base/error.h"
#include "base/file.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostNameBytes = 255;  // of a file, on all usual file systems
constexpr int kMostLinks = 40;          // in a row, as the kernel follows

[[noreturn]] void fail_to_write(const fs::path& path, int error) {
  if (error == ENOSPC || error == EDQUOT)
    throw UserError(fmt::format(
        "{}: the disk is full; free some space or choose another output folder, then run again",
        path.string()));
  if (error == EFBIG)
    throw UserError(fmt::format(
        "{}: grows larger than a file may here, expected a limit that it fits into; raise it "
        "(ulimit -f) or choose another output folder, then run again",
        path.string()));
  if (error == EIO)
    throw UserError(
        fmt::format("{}: the disk failed ({}), expected it to keep what is written; look whether "
                    "it is sound or choose another output folder, then run again",
                    path.string(), std::strerror(error)));
  throw UserError(
      fmt::format("{}: cannot be written ({}); choose an output folder you may write to",
                  path.string(), std::strerror(error)));
}

/// Does nothing where the file system has nothing to flush.
bool flush(int descriptor) {
  return ::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP;
}

fs::path folder_with(const fs::path& path) {
  const fs::path folder = path.parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

/// Whether the name is a link that the kernel makes for a process's open file: /dev/stdout,
/// /dev/fd/3. Behind it is a file that somebody writes to, maybe in its middle.
bool names_open_file(const fs::path& path) {
  std::error_code ignored;
  fs::path link = path;
  for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(link, ignored)); ++i) {
    struct statfs system {};
    if (::statfs(folder_with(link).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC)
      return true;
    link = folder_with(link) / fs::read_symlink(link, ignored);
  }
  return false;
}

/// Opened, once a FIFO has a reader.
void write_into(const fs::path& path, const std::function<void(int)>& write) {
  for (;;) {
    const Descriptor file(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY);
    if (file.get() >= 0) return write(file.get());
    const int error = errno;
    std::error_code ignored;
    if (error != ENXIO || !fs::is_fifo(path, ignored)) fail_to_write(path, error);
    wait_a_moment(file.get(), 0);
  }
}

/// A new file beside the one that it will replace; removed unless that happens.
class TemporaryFile {
 public:
  /// @param target  no symbolic link.
  explicit TemporaryFile(const fs::path& target) : target_(target) {
    constexpr int kAttempts = 100;
    for (int i = 0; i < kAttempts && fd_ < 0; ++i) {
      const std::string mark =
          fmt::format(".part-{}{}", ::getpid(), i == 0 ? "" : "-" + std::to_string(i));
      std::string name = target.filename().string();
      name.resize(std::min(name.size(), kMostNameBytes - mark.size()));
      path_ = target.parent_path() / (name + mark);
      // Nobody else's file, and no link that somebody has laid there.
      fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
      if (fd_ < 0 && errno != EEXIST) break;
    }
    if (fd_ < 0) fail_to_write(target, errno);
  }
  ~TemporaryFile() {
    ::close(fd_);
    if (!in_place_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int descriptor() const { return fd_; }

  void put_in_place() {
    if (!flush(fd_) || ::rename(path_.c_str(), target_.c_str()) != 0) fail_to_write(target_, errno);
    in_place_ = true;  // also where the flush fails: the old file is gone
    flush_folder(target_.parent_path());
  }

 private:
  fs::path target_, path_;
  int fd_ = -1;
  bool in_place_ = false;
};

}  // namespace

fs::path follow_links(fs::path path) {
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!fs::is_symlink(fs::symlink_status(path, error))) return path;
    const fs::path target = fs::read_symlink(path, error);
    if (error) fail_to_write(path, error.value());
    path = path.parent_path() / target;
  }
  fail_to_write(path, ELOOP);
}

bool is_written_into(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) fail_to_write(path, errno);
    return false;
  }
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) return true;
  if (!S_ISREG(status.st_mode))
    throw UserError(fmt::format(
        "{}: is {}, expected a file or nothing there; move it away or name another output file",
        path.string(), file_type(status.st_mode)));
  return names_open_file(path);
}

void flush_folder(const fs::path& folder) {
  const Descriptor opened(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  if (opened.get() < 0 && errno == EACCES) return;  // may be written, not read
  if (opened.get() < 0 || !flush(opened.get())) fail_to_write(folder, errno);
}

void flush_file(int descriptor, const fs::path& name) {
  if (!flush(descriptor)) fail_to_write(name, errno);
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_to_write(to, errno);
  flush_folder(to.parent_path());
}

void write_all(int descriptor, std::string_view bytes, const fs::path& name) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put >= 0)
      bytes.remove_prefix(static_cast<size_t>(put));
    else if (errno == EAGAIN)
      wait_a_moment(descriptor, POLLOUT);
    else if (errno != EINTR)
      fail_to_write(name, errno);
  }
}

void replace_file(const fs::path& path, const std::function<void(int)>& write) {
  if (is_written_into(path)) return write_into(path, write);
  TemporaryFile file(follow_links(path));
  write(file.descriptor());
  file.put_in_place();
}

void write_file(const fs::path& path, std::string_view bytes) {
  write_file(path, std::span(&bytes, 1));
}

void write_file(const fs::path& path, std::span<const std::string_view> parts) {
  replace_file(path, [&](int descriptor) {
    for (const std::string_view part : parts) write_all(descriptor, part, path);
  });
}

void copy_whole_file(const fs::path& from, const fs::path& to) {
  const Descriptor source(from, O_RDONLY);
  const auto expect = [&](bool read) {
    if (!read)
      throw UserError(
          fmt::format("{}: cannot be read ({}), expected a file to copy; check its rights",
                      from.string(), std::strerror(errno)));
  };
  expect(source.get() >= 0);
  std::string bytes(size_t{1} << 20, '\0');
  replace_file(to, [&](int descriptor) {
    for (;;) {
      const ssize_t got = ::read(source.get(), bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR) continue;
      expect(got >= 0);
      if (got == 0) return;
      write_all(descriptor, std::string_view(bytes).substr(0, static_cast<size_t>(got)), to);
    }
  });
}

void make_folder(const fs::path& path) {
  std::error_code error;
  std::error_code ignored;
  std::vector<fs::path> above;  // the folders that get a new name in them
  for (fs::path made = path; !made.empty() && !fs::exists(made, ignored); made = above.back())
    above.push_back(made.parent_path());
  fs::create_directories(path, error);
  if (fs::exists(path, ignored) && !fs::is_directory(path, ignored))
    throw UserError(fmt::format("{}: is a file, expected a folder; choose another output folder",
                                path.string()));
  if (error) fail_to_write(path, error.value());
  if (::access(path.c_str(), W_OK | X_OK) != 0) fail_to_write(path, errno);
  for (const fs::path& folder : above) flush_folder(folder);
}

}  // namespace medusa
