#include "base/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace medusa {
namespace {

/// Runs it in a process of its own, whose stdout this is. @returns its exit status.
pid_t start_printing(int out, const std::function<void()>& print) {
  const pid_t child = fork();
  if (child != 0) return child;
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::signal(SIGPIPE, SIG_IGN);
  try {
    print();
  } catch (const ReaderGone&) {
    ::_exit(3);
  } catch (const UserError&) {
    ::_exit(2);
  }
  ::_exit(0);
}

int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string read_all(int from) {
  std::string text;
  char buffer[1000];
  for (ssize_t got; (got = ::read(from, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  return text;
}

/// What comes out of a pipe, or a terminal that changes nothing.
std::string printed(bool to_terminal, const std::function<void()>& print) {
  int ends[2] = {-1, -1};
  if (to_terminal) {
    EXPECT_EQ(::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
    termios settings{};
    ::tcgetattr(ends[1], &settings);
    ::cfmakeraw(&settings);
    ::tcsetattr(ends[1], TCSANOW, &settings);
  } else {
    EXPECT_EQ(::pipe(ends), 0);
  }
  const pid_t child = start_printing(ends[1], print);
  ::close(ends[1]);
  const std::string text = read_all(ends[0]);
  ::close(ends[0]);
  EXPECT_EQ(status_of(child), 0);
  return text;
}

const std::string kEvil = "a\x1b]0;t\a\xC2\x9B\n";

TEST(Output, TextForPeopleIsShownEverywhere) {
  for (const bool to_terminal : {false, true}) {
    EXPECT_EQ(printed(to_terminal, [] { print_text("{}{}", kEvil, 7); }),
              "a\\x1b]0;t\\x07\\u009b\n7");
    EXPECT_EQ(printed(to_terminal, [] { print_note("{}", kEvil); }), "a\\x1b]0;t\\x07\\u009b\n");
  }
}

TEST(Output, AnAnswerIsRawWhereNoTerminalIs) {
  EXPECT_EQ(printed(false, [] { print_answer(kEvil); }), kEvil);
  EXPECT_EQ(printed(true, [] { print_answer(kEvil); }), "a\\x1b]0;t\\x07\\u009b\n");
}

TEST(Output, OurOwnBytesArriveAsTheyAre) {
  EXPECT_EQ(printed(true, [] { print_bytes("\x1b[1m"); }), "\x1b[1m");
}

TEST(Output, JsonHoldsNoControlCharactersAndIsAlwaysUtf8) {
  EXPECT_EQ(printed(false,
                    [] {
                      print_json(nlohmann::json{{"a", kEvil + "\xff"}});
                    }),
            "{\"a\":\"a\\u001b]0;t\\u0007\\u009b\\n\uFFFD\"}\n");
}

TEST(Output, WaitsForAPipeThatSomebodyMadeNonBlocking) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  ::fcntl(ends[0], F_SETFL, 0);
  const std::string large(1'000'000, 'x');
  const pid_t child = start_printing(ends[1], [&] { print_bytes(large); });
  ::close(ends[1]);
  EXPECT_EQ(read_all(ends[0]), large);
  ::close(ends[0]);
  EXPECT_EQ(status_of(child), 0);
}

TEST(Output, SaysWhetherItWasLostOrIsNotWanted) {
  const auto print = [] { print_text("text"); };
  const auto note = [] { print_note("text"); };
  const int full = ::open("/dev/full", O_WRONLY), unreadable = ::open("/dev/null", O_RDONLY);
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  EXPECT_EQ(status_of(start_printing(full, print)), 2);
  EXPECT_EQ(status_of(start_printing(unreadable, print)), 2);
  EXPECT_EQ(status_of(start_printing(ends[1], print)), 3);
  for (const int each : {full, unreadable, ends[1]}) {
    EXPECT_EQ(status_of(start_printing(each, note)), 0) << "notes may be lost";
    ::close(each);
  }
}

TEST(Output, ClosedStreamsAreOpenedTheWrongWayRound) {
  const int null = ::open("/dev/null", O_RDWR);
  const auto check = [] {
    for (const int stream : {0, 1, 2}) ::close(stream);
    prepare_standard_streams();
    char byte = 0;
    const bool refused = ::read(0, &byte, 1) < 0 && ::write(1, &byte, 1) < 0 &&
                         ::write(2, &byte, 1) < 0 && ::open("/dev/null", O_RDONLY) > 2;
    ::_exit(refused ? 7 : 8);
  };
  EXPECT_EQ(status_of(start_printing(null, check)), 7);
  ::close(null);
}

TEST(Output, OpenStreamsStayWhatTheyAre) {
  EXPECT_EQ(printed(false,
                    [] {
                      prepare_standard_streams();
                      print_text("still here");
                    }),
            "still here");
}

TEST(Output, EndsAsSigpipeDoesWhateverTheParentSet) {
  const int null = ::open("/dev/null", O_RDWR);
  EXPECT_EQ(status_of(start_printing(null,
                                     [] {
                                       sigset_t all;
                                       sigfillset(&all);
                                       ::sigprocmask(SIG_BLOCK, &all, nullptr);
                                       end_as_broken_pipe();
                                     })),
            128 + SIGPIPE);
  ::close(null);
}

}  // namespace
}  // namespace medusa
