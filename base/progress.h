// Progress of a long stage, told to whoever asked for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace medusa {

/// A moment of a stage.
struct StageProgress {
  std::string stage;      // "load"
  std::string unit;       // "tensors"
  int64_t done = 0;       // units, those of earlier runs included
  int64_t total = 0;      // units; 0: not known
  int64_t from = 0;       // units that were there before this run
  double seconds = 0;     // since the stage began
  std::string note{};     // for people; often empty
  bool finished = false;  // the last that is told of the stage
  bool given_up = false;  // the last, too: an error or an interruption ended it
};

/// Called by the thread that does the work; stages may lie inside each other. What it throws ends
/// the work.
using ProgressFunction = std::function<void(const StageProgress&)>;

/// One stage: tells of its first update, then at most ten times a second, and of its end.
///
/// Thread safety: none; one thread reports.
class Progress {
 public:
  /// @param tell   empty: nothing is told.
  /// @param total  in units; 0: not known.
  Progress(ProgressFunction tell, std::string stage, std::string unit, int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// @param done  units finished since the start, not since the last call.
  void update(int64_t done, const std::string& note = {});

  /// Units that were there before this run (a resumed stage): they count as done, not as work.
  void start_from(int64_t done) { now_.from = done; }

  /// The end, once; the destructor gives the stage up if not called.
  void finish(const std::string& note = {});

 private:
  void tell(const std::string& note);

  ProgressFunction tell_;
  StageProgress now_;
  bool told_ = false;
  std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point told_at_;
};

}  // namespace medusa
