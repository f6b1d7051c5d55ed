#include "tools/chat/answer_screen.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/output.h"
#include "base/shown_text.h"

namespace medusa {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kBetweenLooks = std::chrono::milliseconds(100);
constexpr int kFewestRows = 4;

constexpr const char *kHeadsTint = "\x1b[36m", *kLookupTint = "\x1b[33m", *kOtherTint = "\x1b[35m";
constexpr const char *kDim = "\x1b[2m", *kNoTint = "\x1b[0m";
constexpr const char *kSaveCursor = "\x1b\x37", *kRestoreCursor = "\x1b\x38";
constexpr const char* kAllLines = "\x1b[r";  // scroll; the cursor goes to the first

/// One color per meaning, as on the server's page.
const char* tint_of(DrafterKind drafter) {
  switch (drafter) {
    case DrafterKind::None:
      return nullptr;
    case DrafterKind::Medusa:
    case DrafterKind::Blockwise:
      return kHeadsTint;
    case DrafterKind::PromptLookup:
    case DrafterKind::Retrieval:
    case DrafterKind::Shared:
      return kLookupTint;
    default:
      return kOtherTint;
  }
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

ScreenAbilities ScreenAbilities::of_stdout() {
  const char* kind = std::getenv("TERM");
  const bool moves = stdout_is_terminal() && is_set("TERM") && std::string_view(kind) != "dumb";
  return {moves, moves && !is_set("NO_COLOR")};
}

std::string speed_text(const DecodeStats& stats, std::optional<double> seconds) {
  if (stats.steps == 0) return "0 tokens";
  const auto emitted = static_cast<double>(stats.emitted);
  return fmt::format("{} tokens{}, {:.2f} tokens per step", stats.emitted,
                     seconds ? fmt::format(", {:.1f} tokens/s", emitted / *seconds) : "",
                     emitted / static_cast<double>(stats.steps));
}

std::string tint_legend(const ScreenAbilities& abilities) {
  if (!abilities.has_colors) return "";
  return fmt::format(
      "  tokens of an answer: the model's own, {1}drafted by heads{0}, {2}found by lookup{0}, "
      "{3}by another drafter{0}\n",
      kNoTint, kHeadsTint, kLookupTint, kOtherTint);
}

void AnswerScreen::begin() {
  wrote_ = Clock::now();
  if (abilities_.moves_cursor) reserve_last_line();
}

/// Text scrolls above the last line from here on.
void AnswerScreen::reserve_last_line() {
  const TerminalSize size = stdout_terminal_size();
  if (size.rows < kFewestRows) return;
  print_bytes(fmt::format("\n{}\x1b[1;{}r{}\x1b[A", kSaveCursor, size.rows - 1, kRestoreCursor));
  reserved_ = size;
}

void AnswerScreen::release_last_line() {
  if (!reserved_) return;
  const TerminalSize size = *std::exchange(reserved_, std::nullopt);
  std::string text = kSaveCursor;
  if (size == stdout_terminal_size()) text += fmt::format("\x1b[{};1H\x1b[2K", size.rows);
  print_bytes(text + kAllLines + kRestoreCursor);
}

void AnswerScreen::show(std::string_view piece, std::optional<DrafterKind> drafter) {
  if (piece.empty()) return;
  if (!abilities_.has_colors) {
    pending_ += piece;
    return;
  }
  const char* tint = drafter ? tint_of(*drafter) : nullptr;
  if (tint != tint_) pending_ += tint == nullptr ? kNoTint : tint;
  tint_ = tint;
  pending_ += shown_text(piece);
}

void AnswerScreen::end_step(const DecodeStats& stats) {
  const std::string text = std::exchange(pending_, {});
  if (abilities_.has_colors)
    print_bytes(text);
  else if (!text.empty())
    print_answer(text);
  if (reserved_ && *reserved_ != stdout_terminal_size()) release_last_line();  // and leave it alone
  if (reserved_ && Clock::now() - wrote_ >= kBetweenLooks) write_last_line(stats);
}

void AnswerScreen::write_last_line(const DecodeStats& stats) {
  wrote_ = Clock::now();
  const std::string text = speed_text(stats, std::nullopt) + "; Ctrl-C stops";
  print_bytes(fmt::format("{}\x1b[{};1H\x1b[2K{}{}{}{}", kSaveCursor, reserved_->rows,
                          abilities_.has_colors ? kDim : "",
                          text.substr(0, static_cast<size_t>(reserved_->columns - 1)),
                          abilities_.has_colors ? kNoTint : "", kRestoreCursor));
}

void AnswerScreen::finish() {
  std::string text = std::exchange(pending_, {});
  if (abilities_.has_colors)
    print_bytes(text + (tint_ != nullptr ? kNoTint : ""));
  else if (!text.empty())
    print_answer(text);
  tint_ = nullptr;
  release_last_line();
  print_bytes("\n");
}

void AnswerScreen::end() noexcept {
  try {
    if (tint_ != nullptr) print_bytes(kNoTint);
    release_last_line();
  } catch (...) {  // nobody is there to see it
  }
}

}  // namespace medusa
