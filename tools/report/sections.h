// The sections of the report, each as HTML. A section whose artifact is absent says so in a
// sentence instead.
#pragma once

#include <string>

#include "tools/report/report_inputs.h"
#include "tools/report/section_parts.h"

namespace medusa {

std::string headline_section(const ReportInputs& inputs);
std::string comparison_section(const ReportInputs& inputs);  // table, accepted lengths, step times
std::string example_section(const ReportInputs& inputs);     // one question answered by each; empty
                                                             // without
std::string tree_section(const ReportInputs& inputs);        // picture, sizes, most frequent paths
std::string training_section(const ReportInputs& inputs);    // curves, accuracies
std::string joint_section(const ReportInputs& inputs);       // curves, the guard; empty without
std::string origin_section(const ReportInputs& inputs);      // dataset, fingerprints, settings

}  // namespace medusa
