#include "tools/shortened_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace medusa {
namespace {

constexpr int kUserError = 2;

// All of this runs inside a signal handler: no memory is asked for, and no lock is taken.

/// Characters of a file, one after the other.
class Characters {
 public:
  explicit Characters(const char* path) : file_(::open(path, O_RDONLY | O_CLOEXEC)) {}

  /// @returns  -1: there are no more.
  int next() {
    if (at_ == size_) {
      at_ = 0;
      size_ = file_ < 0 ? 0 : ::read(file_, buffer_, sizeof buffer_);
      if (size_ <= 0) return size_ = 0, -1;
    }
    return static_cast<unsigned char>(buffer_[at_++]);
  }

 private:
  int file_;
  char buffer_[1024];
  ssize_t at_ = 0, size_ = 0;
};

/// A line of /proc/self/maps: "7f00-7f80 r--p 00000000 fe:00 123   /path".
struct Mapping {
  uintptr_t begin = 0, end = 0;
  char path[4096] = "";
};

int digit_of(int c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

uintptr_t read_number(Characters& text) {
  uintptr_t out = 0;
  for (int digit = digit_of(text.next()); digit >= 0; digit = digit_of(text.next()))
    out = 16 * out + static_cast<uintptr_t>(digit);
  return out;
}

/// @returns  false: there are no more lines.
bool read_mapping(Characters& text, Mapping& line) {
  line.begin = read_number(text);
  line.end = read_number(text);
  size_t size = 0;
  int c = text.next();
  for (; c >= 0 && c != '\n'; c = text.next())
    if ((c == '/' || size > 0) && size + 1 < sizeof line.path)
      line.path[size++] = static_cast<char>(c);
  line.path[size] = '\0';
  return c >= 0;
}

void tell(const char* text) {
  for (size_t left = std::strlen(text); left > 0;) {
    const ssize_t wrote = ::write(STDERR_FILENO, text, left);
    if (wrote <= 0) return;
    text += wrote;
    left -= static_cast<size_t>(wrote);
  }
}

Mapping g_mapping;  // too large for a small stack

extern "C" void on_bus_error(int /*signal*/, siginfo_t* info, void* /*context*/) {
  static std::atomic_flag is_told = ATOMIC_FLAG_INIT;
  while (is_told.test_and_set()) ::pause();  // another thread is about to end the process
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  Characters text("/proc/self/maps");
  while (read_mapping(text, g_mapping)) {
    if (address < g_mapping.begin || address >= g_mapping.end || g_mapping.path[0] == '\0')
      continue;
    tell("medusa: ");
    tell(g_mapping.path);
    tell(
        ": the file became shorter, or its disk fails, while it was read, expected it to stay as "
        "it is; bring it back, then run again\n");
    ::_exit(kUserError);
  }
  std::signal(SIGBUS, SIG_DFL);  // the same instruction comes again, and ends the process
  is_told.clear();
}

}  // namespace

void report_shortened_files() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace medusa
