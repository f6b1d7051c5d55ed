// The run's report, written anew while training goes on.
#pragma once

#include <chrono>
#include <optional>

#include "data/dataset/dataset_reader.h"
#include "tools/report/report_inputs.h"
#include "tools/run/run_config.h"

namespace medusa {

/// Writes run/report.html after a training's reports, at most every few seconds; a browser that has
/// it open loads it again by itself. A page that cannot be written is left alone: training goes on.
///
/// Thread safety: none.
class LiveReport {
 public:
  /// Kept by reference.
  LiveReport(const RunConfig& config, const DatasetReader& dataset);

  /// After a report.
  void update();

  /// When training has ended: the page no longer loads itself.
  void finish();

 private:
  void write(int64_t reload_s) const;

  const RunConfig& config_;
  DatasetSummary dataset_;
  std::optional<std::chrono::steady_clock::time_point> written_;
};

}  // namespace medusa
