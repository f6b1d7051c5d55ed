// Progress of a long stage on stderr: one line that is rewritten on a terminal, plain lines
// elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace medusa {

/// "12.3s", "4m05s", "1h02m".
std::string format_duration(double seconds);

/// Shows "stage  done/total unit  37%  1234 unit/s  ETA 1m20s  note". On a terminal at most ten
/// times a second; elsewhere a line every ten seconds, so that a log never has a silent minute.
///
/// Thread safety: none; one thread reports.
class Progress {
 public:
  /// @param total  in units; 0: not known, then neither share nor ETA is shown.
  /// @param quiet  nothing is shown: another process tells the same.
  Progress(std::string stage, std::string unit, int64_t total, bool quiet = false);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// @param done  units finished since the start, not since the last call.
  void update(int64_t done, const std::string& note = {});

  /// Units that were there before this run (a resumed stage): shown as done, left out of the rate.
  void start_from(int64_t done) { from_ = done; }

  /// The last line, with the time the stage took. Called once; the destructor ends the line if not.
  void finish(const std::string& note = {});

 private:
  std::string line(const std::string& note) const;
  void show(const std::string& text, bool last);

  std::string stage_;
  std::string unit_;
  int64_t total_;
  int64_t done_ = 0;
  int64_t from_ = 0;
  bool quiet_;
  bool terminal_;
  bool open_ = false;  // a rewritten line stands on the terminal
  bool finished_ = false;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace medusa
