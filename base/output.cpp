#include "base/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "base/shown_text.h"

namespace medusa {
namespace {

constexpr int kBrokenPipe = 128 + SIGPIPE;  // as shells say it

/// @returns 0 once all are written, else why not (errno).
int write_to(int stream, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(stream, bytes.data(), bytes.size());
    if (put >= 0) {
      bytes.remove_prefix(static_cast<size_t>(put));
    } else if (errno == EAGAIN) {  // somebody else has made the terminal or pipe non-blocking
      pollfd full{stream, POLLOUT, 0};
      ::poll(&full, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

[[noreturn]] void fail_to_print(int error) {
  throw UserError(fmt::format(
      "standard output: {}, expected a terminal, file or pipe that takes all that is printed; free "
      "some space or send it elsewhere, to /dev/null if nobody needs it, and run again",
      error == EBADF ? "it is closed"
                     : fmt::format("what was printed is cut off ({})", std::strerror(error))));
}

}  // namespace

void prepare_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number, which is this one, as those below are open.
    if (::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream)
      throw UserError(fmt::format(
          "the standard streams: number {} is closed and /dev/null cannot be opened ({}), expected "
          "it open; start the program with all three of them",
          stream, std::strerror(errno)));
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void end_as_broken_pipe() {
  std::signal(SIGPIPE, SIG_DFL);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  ::raise(SIGPIPE);
  ::_exit(kBrokenPipe);
}

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

TerminalSize stdout_terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_row, size.ws_col};
}

bool stdout_takes_bytes() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0;
}

void print_bytes(std::string_view bytes) {
  const int error = write_to(STDOUT_FILENO, bytes);
  if (error == EPIPE) throw ReaderGone();
  if (error != 0) fail_to_print(error);
}

void note_bytes(std::string_view bytes) { write_to(STDERR_FILENO, bytes); }

void print_answer(std::string_view piece) {
  if (stdout_is_terminal())
    print_shown(piece);
  else
    print_bytes(piece);
}

void print_shown(std::string_view text) { print_bytes(shown_text(text)); }

void note_shown(std::string_view text) { note_bytes(shown_text(text)); }

void print_json_line(std::string_view text) { print_bytes(shown_json(text) + "\n"); }

}  // namespace medusa
