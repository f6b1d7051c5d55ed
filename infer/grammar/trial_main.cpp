// The program medusa-grammar SECONDS BYTES: compiles the grammars that come through its standard
// input, a socket (trial_frames.h), and answers each with an empty frame. The system ends it where
// one takes more seconds of CPU time. It is not for people.
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>

#include "base/error.h"
#include "infer/grammar/trial_frames.h"

namespace {

using namespace medusa;

/// Of CPU time of this process from now on; behind them SIGPROF comes. 0: never.
void allow_seconds(int64_t seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

void allow_bytes(int64_t bytes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map terabytes
  const rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  ::setrlimit(RLIMIT_AS, &limit);
#else
  static_cast<void>(bytes);
#endif
}

void answer_grammars(int64_t seconds) {
  const auto first = receive_frame(STDIN_FILENO);
  if (!first) return;
  const auto compiler = make_grammar_compiler(unpacked_vocabulary(*first));
  while (const auto frame = receive_frame(STDIN_FILENO)) {
    allow_seconds(seconds);
    try {
      compiler->compile(unpacked_grammar(*frame));
    } catch (const UserError&) {  // whoever compiles it next is told the same
    }
    allow_seconds(0);
    if (!send_frame(STDIN_FILENO, "")) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Where medusa starts this program it may hold sockets of clients, which close with it alone.
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);  // medusa's
  std::signal(SIGPROF, SIG_DFL);
  sigset_t ends;  // which the thread that started it may block
  sigemptyset(&ends);
  sigaddset(&ends, SIGPROF);
  ::sigprocmask(SIG_UNBLOCK, &ends, nullptr);
  if (argc != 3) return 2;
  try {
    allow_bytes(std::atoll(argv[2]));
    answer_grammars(std::atoll(argv[1]));
    return 0;
  } catch (const std::bad_alloc&) {
    return kTrialNeedsMemory;
  } catch (const std::exception&) {
    return 1;
  }
}
