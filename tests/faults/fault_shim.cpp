// A library for LD_PRELOAD that counts what a program changes below one folder, writes it down, and
// lets one of these operations fail. tools/dev/faults/fault_matrix.py says what for.
//
//   FAULT_FOLDER   whole path of the folder; operations elsewhere are not seen
//   FAULT_LOG      file that gets a line for each operation: name, result, inode, path, second
//   path,
//                  offset, bytes; the last column is where its bytes begin in FAULT_BYTES
//   FAULT_BYTES    file that gets the bytes that were written; nothing: they are not kept
//   FAULT_AT       number of the operation that fails, from 0
//   FAULT_KIND     how: ENOSPC, EIO; short (half of a write, said so); full (half of a write, then
//                  ENOSPC for all that needs room); kill (SIGKILL before it)
//   FAULT_NO_SWAP  two names cannot be swapped, and a file has one name: as on many file systems
//
// It sees what goes through libc's functions, not what libc itself calls: nothing of ours writes
// through FILE or a shared mapping.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>

namespace {

/// The function of this name that would have been called without us.
template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// What an operation is about, as the log tells it.
struct Operation {
  const char* name;
  std::string path, second = "-";
  int descriptor = -1;  // of the open file, where there is one
  int64_t offset = -1;
  size_t bytes = 0;
  bool needs_room = true;  // a full disk refuses it
};

class Shim {
 public:
  /// Lives until the process is gone: files are closed and removed late.
  static Shim& instance() {
    static auto* shim = new Shim;
    return *shim;
  }

  bool watches(const std::string& path) const {
    return !folder_.empty() && path.starts_with(folder_) &&
           (path.size() == folder_.size() || path[folder_.size()] == '/');
  }

  bool cannot_swap() const { return !no_swap_.empty(); }

  /// Runs the operation, or lets it fail.
  /// @param run  called with the most bytes that it may write.
  template <typename Run>
  ssize_t operate(Operation operation, const Run& run) {
    const std::scoped_lock lock(mutex_);
    const bool writes = operation.bytes > 0;
    const bool now = count_++ == at_;
    size_t most = operation.bytes;
    int error = is_full_ && operation.needs_room ? ENOSPC : 0;
    if (now && kind_ == "kill") ::kill(::getpid(), SIGKILL);
    if (now && kind_ == "ENOSPC") error = ENOSPC;
    if (now && kind_ == "EIO") error = EIO;
    if (now && (kind_ == "short" || kind_ == "full") && writes) most = (most + 1) / 2;
    if (now && kind_ == "full") {
      is_full_ = true;
      if (!writes && operation.needs_room) error = ENOSPC;
    }
    ssize_t result = -1;
    if (error == 0) {
      result = run(most);
      error = errno;
    }
    note(operation, result);
    errno = error;
    return result;
  }

 private:
  Shim()
      : folder_(variable("FAULT_FOLDER")),
        kind_(variable("FAULT_KIND")),
        no_swap_(variable("FAULT_NO_SWAP")),
        log_(open_aside(variable("FAULT_LOG"))),
        bytes_(open_aside(variable("FAULT_BYTES"))) {
    const std::string at = variable("FAULT_AT");
    if (!at.empty()) at_ = std::atoll(at.c_str());
  }

  static int open_aside(const std::string& path) {
    if (path.empty()) return -1;
    return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path.c_str(),
                                      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  }

  static void put(int descriptor, const char* bytes, size_t size) {
    while (size > 0) {
      const long put = ::syscall(SYS_write, descriptor, bytes, size);
      if (put <= 0) std::abort();  // the log is not whole
      bytes += put;
      size -= static_cast<size_t>(put);
    }
  }

  /// The bytes that the operation has just written, which are read back from the file.
  int64_t keep_bytes(const Operation& operation, size_t size) const {
    if (bytes_ < 0 || operation.offset < 0 || size == 0) return -1;
    const int64_t place = ::lseek(bytes_, 0, SEEK_END);
    const std::string own = "/proc/self/fd/" + std::to_string(operation.descriptor);
    const int file =
        static_cast<int>(::syscall(SYS_openat, AT_FDCWD, own.c_str(), O_RDONLY | O_CLOEXEC));
    std::string read(size, '\0');
    const ssize_t got = ::pread(file, read.data(), size, operation.offset);
    ::close(file);
    if (got != static_cast<ssize_t>(size)) std::abort();
    put(bytes_, read.data(), size);
    return place;
  }

  void note(const Operation& operation, ssize_t result) const {
    if (log_ < 0) return;
    struct stat status {};
    const bool known = operation.descriptor >= 0 ? ::fstat(operation.descriptor, &status) == 0
                                                 : ::lstat(operation.path.c_str(), &status) == 0;
    const auto wrote = operation.bytes > 0 && result > 0 ? static_cast<size_t>(result) : 0;
    std::string line = operation.name;
    for (const std::string& column :
         {std::to_string(result), std::to_string(known ? status.st_ino : 0), operation.path,
          operation.second, std::to_string(operation.offset), std::to_string(wrote),
          std::to_string(keep_bytes(operation, wrote))})
      line += "\t" + column;
    line += "\n";
    put(log_, line.data(), line.size());
  }

  std::string folder_, kind_, no_swap_;
  int log_, bytes_;
  std::mutex mutex_;
  int64_t count_ = 0, at_ = -1;
  bool is_full_ = false;
};

/// The whole path of a name.
std::string whole_path(int folder, const char* name) {
  std::string path = name;
  if (!path.starts_with('/')) {
    char before[PATH_MAX] = "";
    if (folder == AT_FDCWD) {
      if (::getcwd(before, sizeof before) == nullptr) return path;
    } else {
      const std::string own = "/proc/self/fd/" + std::to_string(folder);
      if (::readlink(own.c_str(), before, sizeof before - 1) < 0) return path;
    }
    path = std::string(before) + "/" + path;
  }
  std::string plain = std::filesystem::path(path).lexically_normal().string();
  if (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  return plain;
}

/// The path of an open file or folder; nothing of a pipe.
std::string path_of(int descriptor) {
  char path[PATH_MAX] = "";
  const std::string own = "/proc/self/fd/" + std::to_string(descriptor);
  const int error = errno;
  const ssize_t size = ::readlink(own.c_str(), path, sizeof path - 1);
  errno = error;
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : "";
}

int64_t place_in(int descriptor) {
  struct stat status {};
  if ((::fcntl(descriptor, F_GETFL) & O_APPEND) != 0 && ::fstat(descriptor, &status) == 0)
    return status.st_size;
  return ::lseek(descriptor, 0, SEEK_CUR);
}

/// Runs what writes to an open file.
template <typename Run>
ssize_t write_some(const char* name, int descriptor, size_t size, int64_t offset, const Run& run) {
  const std::string path = path_of(descriptor);
  if (!Shim::instance().watches(path)) return run(size);
  if (offset < 0) offset = place_in(descriptor);
  return Shim::instance().operate({name, path, "-", descriptor, offset, size}, run);
}

/// Runs what needs nothing but an open file.
template <typename Run>
int with_file(const char* name, int descriptor, int64_t offset, const Run& run) {
  const std::string path = path_of(descriptor);
  if (!Shim::instance().watches(path)) return run();
  return static_cast<int>(Shim::instance().operate({name, path, "-", descriptor, offset},
                                                   [&](size_t) { return ssize_t{run()}; }));
}

/// Runs what changes names.
template <typename Run>
int with_path(const char* name, const std::string& path, const std::string& second, bool needs_room,
              const Run& run) {
  if (!Shim::instance().watches(path)) return run();
  return static_cast<int>(Shim::instance().operate({name, path, second, -1, -1, 0, needs_room},
                                                   [&](size_t) { return ssize_t{run()}; }));
}

/// Opening counts where it makes or empties a file.
template <typename Run>
int open_some(const std::string& path, int flags, const Run& run) {
  const bool changes = (flags & (O_CREAT | O_TRUNC)) != 0;
  struct stat status {};
  const bool is_new = ::lstat(path.c_str(), &status) != 0;
  if (!changes || (!is_new && (flags & O_TRUNC) == 0)) return run();
  return with_path(is_new ? "create" : "empty", path, "-", is_new, run);
}

mode_t mode_in(int flags, va_list more) {
  return (flags & O_CREAT) != 0 ? static_cast<mode_t>(va_arg(more, int)) : 0;
}

int remove_name(int folder, const char* name, int flags) {
  using Function = int(int, const char*, int);
  return with_path((flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink", whole_path(folder, name), "-",
                   /*needs_room=*/false,
                   [&] { return next<Function>("unlinkat")(folder, name, flags); });
}

int rename_name(int from, const char* old, int to, const char* fresh, unsigned flags) {
  using Function = int(int, const char*, int, const char*, unsigned);
  if (flags != 0 && Shim::instance().cannot_swap()) {
    errno = EINVAL;
    return -1;
  }
  return with_path(flags == RENAME_EXCHANGE ? "swap" : "rename", whole_path(to, fresh),
                   whole_path(from, old), /*needs_room=*/true,
                   [&] { return next<Function>("renameat2")(from, old, to, fresh, flags); });
}

int link_name(int from, const char* old, int to, const char* fresh, int flags) {
  using Function = int(int, const char*, int, const char*, int);
  const std::string path = whole_path(to, fresh);
  if (Shim::instance().cannot_swap() && Shim::instance().watches(path)) {
    errno = EPERM;
    return -1;
  }
  return with_path("link", path, whole_path(from, old), /*needs_room=*/true,
                   [&] { return next<Function>("linkat")(from, old, to, fresh, flags); });
}

int open_at(const char* name, int folder, const char* path, int flags, mode_t mode) {
  using Function = int(int, const char*, int, ...);
  return open_some(whole_path(folder, path), flags,
                   [&] { return next<Function>(name)(folder, path, flags, mode); });
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_in(flags, more);
  va_end(more);
  return open_at("openat", AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_in(flags, more);
  va_end(more);
  return open_at("openat64", AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_in(flags, more);
  va_end(more);
  return open_at("openat", folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_in(flags, more);
  va_end(more);
  return open_at("openat64", folder, path, flags, mode);
}
int creat(const char* path, mode_t mode) {
  return open_at("openat", AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  return write_some("write", descriptor, size, -1, [&](size_t most) {
    return next<ssize_t(int, const void*, size_t)>("write")(descriptor, bytes, most);
  });
}
ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  return write_some("write", descriptor, size, offset, [&](size_t most) {
    return next<ssize_t(int, const void*, size_t, off_t)>("pwrite")(descriptor, bytes, most,
                                                                    offset);
  });
}
ssize_t pwrite64(int descriptor, const void* bytes, size_t size, off64_t offset) {
  return pwrite(descriptor, bytes, size, offset);
}
/// One part of it, which writev() may do as well.
ssize_t writev(int descriptor, const iovec* parts, int count) {
  const iovec* part =
      std::find_if(parts, parts + count, [](const iovec& each) { return each.iov_len > 0; });
  if (part == parts + count) return 0;
  return write(descriptor, part->iov_base, part->iov_len);
}
ssize_t sendfile(int to, int from, off_t* offset, size_t size) {
  return write_some("write", to, size, -1, [&](size_t most) {
    return next<ssize_t(int, int, off_t*, size_t)>("sendfile")(to, from, offset, most);
  });
}
ssize_t sendfile64(int to, int from, off64_t* offset, size_t size) {
  return sendfile(to, from, offset, size);
}
ssize_t copy_file_range(int, off64_t*, int, off64_t*, size_t, unsigned) {
  errno = EXDEV;  // the caller copies otherwise
  return -1;
}

int ftruncate(int descriptor, off_t size) noexcept {
  return with_file("truncate", descriptor, size,
                   [&] { return next<int(int, off_t)>("ftruncate")(descriptor, size); });
}
int ftruncate64(int descriptor, off64_t size) noexcept { return ftruncate(descriptor, size); }
int fsync(int descriptor) {
  return with_file("fsync", descriptor, -1, [&] { return next<int(int)>("fsync")(descriptor); });
}
int fdatasync(int descriptor) { return fsync(descriptor); }

int rename(const char* old, const char* fresh) noexcept {
  return rename_name(AT_FDCWD, old, AT_FDCWD, fresh, 0);
}
int renameat(int from, const char* old, int to, const char* fresh) noexcept {
  return rename_name(from, old, to, fresh, 0);
}
int renameat2(int from, const char* old, int to, const char* fresh, unsigned flags) noexcept {
  return rename_name(from, old, to, fresh, flags);
}
int link(const char* old, const char* fresh) noexcept {
  return link_name(AT_FDCWD, old, AT_FDCWD, fresh, 0);
}
int linkat(int from, const char* old, int to, const char* fresh, int flags) noexcept {
  return link_name(from, old, to, fresh, flags);
}
int unlink(const char* path) noexcept { return remove_name(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char* path, int flags) noexcept {
  return remove_name(folder, path, flags);
}
int rmdir(const char* path) noexcept { return remove_name(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) noexcept {
  struct stat status {};
  const bool is_folder = ::lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
  return remove_name(AT_FDCWD, path, is_folder ? AT_REMOVEDIR : 0);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return with_path("mkdir", whole_path(AT_FDCWD, path), "-", /*needs_room=*/true, [&] {
    return next<int(int, const char*, mode_t)>("mkdirat")(AT_FDCWD, path, mode);
  });
}
int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  return with_path("mkdir", whole_path(folder, path), "-", /*needs_room=*/true, [&] {
    return next<int(int, const char*, mode_t)>("mkdirat")(folder, path, mode);
  });
}

}  // extern "C"
