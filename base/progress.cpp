#include "base/progress.h"

#include <fmt/format.h>

#include <utility>

#include "base/elapsed.h"
#include "base/output.h"
#include "base/shown_text.h"

namespace medusa {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

std::string format_duration(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.1f}s", seconds);
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
}

Progress::Progress(std::string stage, std::string unit, int64_t total, bool quiet)
    : stage_(std::move(stage)),
      unit_(std::move(unit)),
      total_(total),
      quiet_(quiet),
      terminal_(stderr_is_terminal()),
      started_(Clock::now()),
      shown_(started_ - std::chrono::hours(1)) {}

Progress::~Progress() {
  if (open_ && !finished_) note_bytes("\n");
}

std::string Progress::line(const std::string& note) const {
  const double elapsed = seconds_since(started_);
  // The first moments (files opened, memory touched) say nothing about the rest.
  const double rate = elapsed >= 1 ? static_cast<double>(done_ - from_) / elapsed : 0;
  std::string text = stage_ + "  ";
  text += total_ > 0 ? fmt::format("{}/{} {}  {}%", done_, total_, unit_, 100 * done_ / total_)
                     : fmt::format("{} {}", done_, unit_);
  if (rate > 0)
    text += rate < 10 ? fmt::format("  {:.2f} {}/s", rate, unit_)
                      : fmt::format("  {:.0f} {}/s", rate, unit_);
  if (rate > 0 && total_ > done_)
    text += "  ETA " + format_duration(static_cast<double>(total_ - done_) / rate);
  if (!note.empty()) text += "  " + note;
  return text;
}

void Progress::show(const std::string& text, bool last) {
  if (quiet_) return;
  if (terminal_) {
    note_bytes("\r\033[K" + shown_text(text) + (last ? "\n" : ""));
  } else {
    print_note("{}\n", text);
  }
  open_ = terminal_ && !last;
  shown_ = Clock::now();
}

void Progress::update(int64_t done, const std::string& note) {
  done_ = done;
  if (seconds_since(shown_) < (terminal_ ? 0.1 : 10.0)) return;
  show(line(note), false);
}

void Progress::finish(const std::string& note) {
  if (finished_) return;
  finished_ = true;
  std::string text = fmt::format("{}  {} {} in {}", stage_, done_, unit_,
                                 format_duration(seconds_since(started_)));
  if (!note.empty()) text += "  " + note;
  show(text, true);
}

}  // namespace medusa
