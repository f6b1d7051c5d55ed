#include "tools/training/live_report.h"

#include "base/error.h"
#include "base/yaml_fields.h"
#include "tools/report/report.h"

namespace medusa {
namespace {

constexpr int64_t kSeconds = 5;  // between two pages, and between two looks at it

}  // namespace

LiveReport::LiveReport(const RunConfig& config, const DatasetReader& dataset)
    : config_(config), dataset_(summarize(dataset)) {}

void LiveReport::update() {
  const auto now = std::chrono::steady_clock::now();
  if (written_ && now - *written_ < std::chrono::seconds(kSeconds)) return;
  written_ = now;
  write(kSeconds);
}

void LiveReport::finish() { write(0); }

void LiveReport::write(int64_t reload_s) const {
  try {
    ReportInputs inputs = read_report_inputs(config_.run, dataset_);
    inputs.reload_s = reload_s;
    if (inputs.settings.empty()) inputs.settings = write_config(config_);
    write_report(inputs, config_.report_file());
  } catch (const UserError&) {
    // A full disk stops the training itself with a message, at its next checkpoint.
  }
}

}  // namespace medusa
