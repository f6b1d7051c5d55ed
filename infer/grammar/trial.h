// Tries in another process whether a grammar compiles: some take hours, and the library cannot be
// told to stop.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "infer/grammar/grammar.h"

namespace medusa {

/// What a grammar may take.
struct TrialLimits {
  int64_t seconds = 10;              // of CPU time
  int64_t bytes = int64_t{4} << 30;  // of memory
};

/// A process that compiles grammars one after the other: begun for the first one, and anew behind
/// one that ended it.
///
/// Thread safety: none.
class GrammarTrial {
 public:
  /// @param vocabulary  kept by reference.
  /// @param program     medusa-grammar (trial_main.cpp).
  GrammarTrial(const GrammarVocabulary& vocabulary, std::filesystem::path program,
               TrialLimits limits = {});
  GrammarTrial(const GrammarTrial&) = delete;
  ~GrammarTrial();

  /// Returns once the process has compiled the grammar, or refused it as no grammar of its kind:
  /// here it takes no longer then. What came before is known.
  /// @throws UserError  it takes too long or too much memory, or ends the process in another way;
  ///                    the program cannot be started.
  void expect_compiles(const GrammarText& grammar);

 private:
  void start();
  /// Ends the process, if there is one. @returns  what waitpid() says of it.
  int end();
  /// Lets the process compile it, which begins if there is none.
  /// @returns  what waitpid() says of a process that it ended; nothing: it is compiled.
  std::optional<int> ended_by(const GrammarText& grammar);
  /// @returns  why not; empty: it compiles. Of another try it would be the same.
  /// @throws UserError  as expect_compiles(), where that is not sure.
  std::string outcome_of(const GrammarText& grammar);

  const GrammarVocabulary& vocabulary_;
  std::filesystem::path program_;
  TrialLimits limits_;
  int socket_ = -1;                           // to the process, while it runs
  pid_t process_ = 0;                         // 0: none
  std::map<std::string, std::string> known_;  // outcomes by kind and text
};

/// medusa-grammar where it lies: beside the running program.
std::filesystem::path grammar_trial_program();

}  // namespace medusa
