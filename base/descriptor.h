// An open file descriptor, and what it is open on. For base/file.cpp and base/write_file.cpp.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/interrupt.h"

namespace medusa {

/// Closes the descriptor at the end of its scope.
class Descriptor {
 public:
  /// Opens the file; get() is negative, and errno says why, where that fails.
  Descriptor(const std::filesystem::path& path, int flags, mode_t mode = 0)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

/// "a folder", for messages.
inline const char* file_type(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISREG(mode)) return "a file";
  return "a device";
}

/// Waits until the descriptor can be read from or written to, or has an error, or a moment is over.
/// @param events  POLLIN or POLLOUT; 0: only the moment.
/// @throws Interrupted  SIGINT or SIGTERM came.
inline void wait_a_moment(int descriptor, short events) {
  constexpr int kMoment = 50;  // milliseconds; a signal just before poll() does not end it
  pollfd waited{events == 0 ? -1 : descriptor, events, 0};
  stop_if_interrupted();
  ::poll(&waited, 1, kMoment);
  stop_if_interrupted();
}

}  // namespace medusa
