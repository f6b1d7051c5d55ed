// The report of a run: one HTML file with pictures, readable without any other file.
#pragma once

#include <filesystem>
#include <string>

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

}  // namespace medusa
