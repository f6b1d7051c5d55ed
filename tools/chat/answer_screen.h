// An answer as it grows on stdout: on a terminal its drafted tokens are tinted and the last line
// says how fast it is; elsewhere it is plain text.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/output.h"
#include "infer/decode_request.h"
#include "infer/drafter_kind.h"

namespace medusa {

/// What stdout can show.
struct ScreenAbilities {
  bool moves_cursor = false;  // a terminal that understands escape sequences
  bool has_colors = false;    // and NO_COLOR is not set

  static ScreenAbilities of_stdout();
};

/// Control characters of the text are shown on a terminal, and left as they are elsewhere
/// (print_answer()).
///
/// Thread safety: none.
class AnswerScreen {
 public:
  explicit AnswerScreen(ScreenAbilities abilities) : abilities_(abilities) {}
  /// Gives the terminal back as it was, also where an answer failed.
  ~AnswerScreen() { end(); }
  AnswerScreen(const AnswerScreen&) = delete;
  AnswerScreen& operator=(const AnswerScreen&) = delete;

  /// Whether show() tints by drafter.
  bool tints() const { return abilities_.has_colors; }

  /// At the beginning of a line.
  void begin();

  /// @param drafter  who proposed the piece; nothing: the model's own, or nobody knows.
  void show(std::string_view piece, std::optional<DrafterKind> drafter);

  /// After each step: what is shown so far reaches the terminal.
  /// @throws as print_bytes().
  void end_step(const DecodeStats& stats);

  /// The answer is complete: ends its line.
  void finish();

 private:
  void end() noexcept;
  void reserve_last_line();
  void release_last_line();
  void write_last_line(const DecodeStats& stats);

  const ScreenAbilities abilities_;
  std::string pending_;                   // escape sequences and text of the step
  const char* tint_ = nullptr;            // of the text before; null: none
  std::optional<TerminalSize> reserved_;  // the last line is ours on a terminal of this size
  std::chrono::steady_clock::time_point wrote_;
};

/// "42 tokens, 54.0 tokens/s, 2.31 tokens per step".
/// @param seconds  that the steps took; nothing: the tokens/s are left out.
std::string speed_text(const DecodeStats& stats, std::optional<double> seconds);

/// Who is tinted how, for /help; empty without colors.
std::string tint_legend(const ScreenAbilities& abilities);

}  // namespace medusa
