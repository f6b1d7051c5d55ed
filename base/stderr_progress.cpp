#include "base/stderr_progress.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "base/elapsed.h"
#include "base/output.h"
#include "base/shown_text.h"

namespace medusa {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kPlainLineEvery = 10;  // seconds

std::string running_line(const StageProgress& now) {
  // The first moments (files opened, memory touched) say nothing about the rest.
  const double rate = now.seconds >= 1 ? static_cast<double>(now.done - now.from) / now.seconds : 0;
  std::string text = now.stage + "  ";
  text += now.total > 0 ? fmt::format("{}/{} {}  {}%", now.done, now.total, now.unit,
                                      100 * now.done / now.total)
                        : fmt::format("{} {}", now.done, now.unit);
  if (rate > 0)
    text += rate < 10 ? fmt::format("  {:.2f} {}/s", rate, now.unit)
                      : fmt::format("  {:.0f} {}/s", rate, now.unit);
  if (rate > 0 && now.total > now.done)
    text += "  ETA " + format_duration(static_cast<double>(now.total - now.done) / rate);
  if (!now.note.empty()) text += "  " + now.note;
  return text;
}

std::string last_line(const StageProgress& now) {
  const std::string text =
      fmt::format("{}  {} {} in {}", now.stage, now.done, now.unit, format_duration(now.seconds));
  return now.note.empty() ? text : text + "  " + now.note;
}

/// The lines of stages that may lie inside each other.
class ProgressLines {
 public:
  void show(const StageProgress& now) {
    if (now.finished || now.given_up) {
      shown_.erase(now.stage);
      if (now.finished)
        write(last_line(now), true);
      else if (std::exchange(open_, false))
        note_bytes("\n");
      return;
    }
    const auto [last, first] = shown_.try_emplace(now.stage, Clock::now());
    if (!first && !terminal_ && seconds_since(last->second) < kPlainLineEvery) return;
    last->second = Clock::now();
    write(running_line(now), false);
  }

 private:
  void write(const std::string& text, bool last) {
    if (terminal_)
      note_bytes("\r\033[K" + shown_text(text) + (last ? "\n" : ""));
    else
      print_note("{}\n", text);
    open_ = terminal_ && !last;
  }

  const bool terminal_ = stderr_is_terminal();
  bool open_ = false;                               // a rewritten line stands on the terminal
  std::map<std::string, Clock::time_point> shown_;  // of each stage that runs
};

}  // namespace

std::string format_duration(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.1f}s", seconds);
  const auto whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
}

ProgressFunction stderr_progress() {
  return
      [lines = std::make_shared<ProgressLines>()](const StageProgress& now) { lines->show(now); };
}

}  // namespace medusa
