// The executable with standard streams of the test's own: closed ones, files, pipes, a terminal.
#pragma once

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "program.h"

namespace medusa::cli {

/// A file descriptor, closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(const std::string& path, int flags)
      : Descriptor(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

  /// All that comes until the other side is closed, or its terminal hung up.
  std::string read_all() const {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = ::read(number_, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(got));
    return text;
  }

 private:
  int number_;
};

/// What is written to one end comes out of the other.
struct Channel {
  Descriptor read, write;
};

inline Channel make_pipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// A pipe whose reader has gone away.
inline Descriptor make_unread_pipe() { return std::move(make_pipe().write); }

/// A terminal that changes nothing: `write` is the side of the program.
inline Channel make_terminal() {
  int outside = -1, inside = -1;
  EXPECT_EQ(::openpty(&outside, &inside, nullptr, nullptr, nullptr), 0);
  termios settings{};
  ::tcgetattr(inside, &settings);
  ::cfmakeraw(&settings);
  ::tcsetattr(inside, TCSANOW, &settings);
  for (const int end : {outside, inside}) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  return {Descriptor(outside), Descriptor(inside)};
}

inline constexpr int kClosed = -1;

class StartedProgram {
 public:
  /// @param streams      descriptors that the program has as 0, 1 and 2, or kClosed.
  /// @param of_writing   what SIGPIPE is set to when it starts; some parents ignore it.
  StartedProgram(const CliFixture& place, const std::vector<std::string>& arguments,
                 const std::array<int, 3>& streams, sighandler_t of_writing = SIG_DFL)
      : process_(::fork()) {
    if (process_ != 0) return;
    ::signal(SIGPIPE, of_writing);
    std::array<int, 3> kept = streams;  // out of the way of the numbers that they get
    for (int& stream : kept)
      if (stream != kClosed) stream = ::fcntl(stream, F_DUPFD_CLOEXEC, 10);
    for (int number = 0; number < 3; ++number)
      if (kept[static_cast<size_t>(number)] == kClosed)
        ::close(number);
      else
        ::dup2(kept[static_cast<size_t>(number)], number);
    std::vector<char*> words{const_cast<char*>(MEDUSA_BINARY)};
    for (const std::string& argument : arguments)
      words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    if (::chdir((place / "").c_str()) == 0) ::execv(MEDUSA_BINARY, words.data());
    ::_exit(127);
  }
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;
  ~StartedProgram() {
    if (process_ > 0) wait();
  }

  /// @returns exit status; 128 + signal when killed.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(process_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t process_;
};

}  // namespace medusa::cli
