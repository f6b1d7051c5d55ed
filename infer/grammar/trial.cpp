#include "infer/grammar/trial.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "infer/grammar/trial_frames.h"

namespace medusa {
namespace {

constexpr size_t kMostKnown = 64;  // grammars, of at most 64 KiB each

bool needed_memory(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == kTrialNeedsMemory;
}

}  // namespace

GrammarTrial::GrammarTrial(const GrammarVocabulary& vocabulary, std::filesystem::path program,
                           TrialLimits limits)
    : vocabulary_(vocabulary), program_(std::move(program)), limits_(limits) {}

GrammarTrial::~GrammarTrial() { end(); }

void GrammarTrial::start() {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    throw UserError(fmt::format(
        "a grammar cannot be tried: the system gives no sockets ({}), expected two; raise the "
        "limit of open files (ulimit -n)",
        std::strerror(errno)));
  const std::string seconds = std::to_string(limits_.seconds),
                    bytes = std::to_string(limits_.bytes);
  const char* arguments[] = {program_.c_str(), seconds.c_str(), bytes.c_str(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, sockets[1], STDIN_FILENO);
  const int error = ::posix_spawn(&process_, program_.c_str(), &actions, nullptr,
                                  const_cast<char**>(arguments), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(sockets[1]);
  socket_ = sockets[0];
  if (error == 0) {
    send_frame(socket_, packed(vocabulary_));  // where it has ended, the next frame tells
    return;
  }
  process_ = 0;
  end();
  throw UserError(fmt::format(
      "{}: cannot be started ({}), expected the program that tries grammars; build or install it "
      "again, beside medusa-core",
      program_.string(), std::strerror(error)));
}

int GrammarTrial::end() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  if (process_ == 0) return 0;
  ::kill(process_, SIGKILL);  // changes nothing where it has ended
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = 0;
  return status;
}

std::optional<int> GrammarTrial::ended_by(const GrammarText& grammar) {
  if (process_ == 0) start();
  if (send_frame(socket_, packed(grammar)) && receive_frame(socket_)) return std::nullopt;
  return end();
}

std::string GrammarTrial::outcome_of(const GrammarText& grammar) {
  const bool is_new = process_ == 0;
  std::optional<int> ended = ended_by(grammar);
  if (ended && !is_new && needed_memory(*ended)) ended = ended_by(grammar);  // earlier ones took it
  if (!ended) return "";
  const int status = *ended;
  const std::string kind = enum_name(grammar.kind);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
    return fmt::format(
        "the {} takes more than {} seconds to compile, expected less; write it with fewer parts "
        "that may be left out behind each other, and with smaller counts",
        kind, limits_.seconds);
  if (needed_memory(status))
    return fmt::format("the {} takes more than {} MB to compile, expected less; shorten it", kind,
                       limits_.bytes >> 20);
  // What may be another time: nothing is known then.
  throw UserError(fmt::format(
      "the {} ends the grammar library (status {}), expected one that it compiles; write it in "
      "another way, or try again",
      kind, status));
}

void GrammarTrial::expect_compiles(const GrammarText& grammar) {
  const std::string key = enum_name(grammar.kind) + (" " + grammar.text);
  auto known = known_.find(key);
  if (known == known_.end()) {
    if (known_.size() == kMostKnown) known_.clear();
    known = known_.emplace(key, outcome_of(grammar)).first;
  }
  if (!known->second.empty()) throw UserError(known->second);
}

std::filesystem::path grammar_trial_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "medusa-grammar";
}

}  // namespace medusa
