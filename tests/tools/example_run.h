// A finished run with plausible numbers, for the report and for `medusa inspect`.
#pragma once

#include <string>

#include "tools/report/report_inputs.h"

namespace medusa::fixtures {

/// Every part is there. The tree has num_nodes nodes, best first by made-up accuracies.
ReportInputs example_run(int32_t num_nodes = 32);

/// The same comparison as the text of compare.json.
std::string example_comparison();

/// metrics.jsonl: three reports of training and one of validation, two heads.
std::string example_metrics();

/// metrics.jsonl of a joint stage.
std::string example_joint_metrics();

}  // namespace medusa::fixtures
