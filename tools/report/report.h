// The report of a run: one HTML file with pictures, readable without any other file.
#pragma once

#include <filesystem>
#include <string>

#include "tools/report/report_inputs.h"
#include "tools/report/section_parts.h"

namespace medusa {

struct ReportInputs;

/// The page as text: inline SVG and CSS, no scripts, nothing loaded from elsewhere. The same inputs
/// give the same bytes.
std::string report_page(const ReportInputs& inputs);

/// @throws UserError  the file cannot be written.
void write_report(const ReportInputs& inputs, const std::filesystem::path& html);

/// Reads what the run folder holds so far and writes its report.
/// @throws UserError  there is no such folder, or the file cannot be written.
void write_run_report(const std::filesystem::path& run_folder, const std::filesystem::path& html);

/// Writes the report of a folder again if it holds one: it links what was measured since.
void refresh_run_report(const std::filesystem::path& folder);

// The sections of the report, each as HTML. A section whose artifact is absent says so in a
// sentence instead.

std::string headline_section(const ReportInputs& inputs);
std::string comparison_section(const ReportInputs& inputs);  // table, accepted lengths, step times
std::string example_section(const ReportInputs& inputs);     // one question answered by each; empty
                                                             // without
std::string tree_section(const ReportInputs& inputs);        // picture, sizes, most frequent paths
std::string training_section(const ReportInputs& inputs);    // curves, accuracies
std::string joint_section(const ReportInputs& inputs);       // curves, the guard; empty without
std::string origin_section(const ReportInputs& inputs);      // dataset, fingerprints, settings

}  // namespace medusa
