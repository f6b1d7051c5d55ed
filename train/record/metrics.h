// metrics.jsonl: one JSON object per report, names with units. Beside it the same numbers for
// TensorBoard (event_file.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "heads/heads_checkpoint.h"
#include "train/record/appended_file.h"
#include "train/record/event_file.h"

namespace medusa {

/// What a report says. Train reports are means over the steps since the last one; validation
/// reports are over the validation positions.
struct Metrics {
  std::string kind;                // "train", "validation" or "guard"
  int64_t step = 0;                // optimizer steps done
  double epoch = 0;                // passes over the training samples, with a fraction
  double loss = 0;                 // weighted sum over heads, nats
  std::vector<HeadQuality> heads;  // [K]
  double learning_rate = 0;        // of the last step; 0 in validation reports
  double gradient_norm = 0;        // of the last step, before clipping; 0 in validation reports
  int64_t positions = 0;           // trained on so far
  double positions_per_s = 0;      // 0 in validation reports
  double elapsed_s = 0;            // of this run of the program
  int64_t memory_bytes = 0;        // held now; 0 in validation reports
  std::vector<std::pair<std::string, double>> more;  // further numbers, names with units
};

/// Told each report, when it is on the disk. What it throws ends the run, which its last checkpoint
/// continues.
using Reported = std::function<void(const Metrics&)>;

/// Appends a line per report; a line is there whole or cut off by a crash, and then removed by the
/// next run.
class MetricsLog {
 public:
  /// Continues the file: keeps lines up to this step, so that a resumed run repeats none; from step
  /// 0 on it begins anew.
  /// @throws UserError  the folder cannot be written.
  MetricsLog(const std::filesystem::path& file, int64_t step, Reported reported = {});

  /// Adds nothing that an earlier run has reported: what a finished run says when it is started
  /// again is there.
  /// @throws UserError  the disk is full.
  void add(const Metrics& metrics);

  /// Lets what was added outlast a power cut: what continues a checkpoint adds only what is behind
  /// it.
  /// @throws UserError  the disk fails.
  void flush();

  /// Whether a run before this one has reported this.
  bool has(const std::string& kind, int64_t step) const { return kept_.contains({kind, step}); }

 private:
  /// Kind and step of the lines that an earlier run left, and the lines.
  struct Kept {
    std::set<std::pair<std::string, int64_t>> reports;
    std::string lines;
  };
  static Kept lines_up_to(const std::filesystem::path& file, int64_t step);
  MetricsLog(const std::filesystem::path& file, int64_t step, Reported reported, Kept kept);

  std::set<std::pair<std::string, int64_t>> kept_;
  AppendedFile lines_;
  EventFile events_;
  Reported reported_;
};

}  // namespace medusa
