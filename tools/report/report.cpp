#include "tools/report/report.h"

#include "base/file.h"
#include "tools/inspect/artifact_kind.h"
#include "tools/report/report_inputs.h"

namespace medusa {
namespace {

std::string machine_of(const ReportInputs& inputs) {
  if (inputs.comparison.value && !inputs.comparison.value->machine.empty())
    return inputs.comparison.value->machine;
  if (inputs.tree.value && inputs.tree.value->calibration)
    return inputs.tree.value->calibration->machine;
  return {};
}

/// Where, when and by which medusa it was measured.
std::string origin_text(const ReportInputs& inputs) {
  std::string text = machine_of(inputs);
  if (!inputs.comparison.value) return text;
  for (const std::string& part : {inputs.comparison.value->date, inputs.comparison.value->version})
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  return text;
}

}  // namespace

std::string report_page(const ReportInputs& inputs) {
  return html_page("Medusa run: " + inputs.run, origin_text(inputs),
                   headline_section(inputs) + comparison_section(inputs) + example_section(inputs) +
                       tree_section(inputs) + training_section(inputs) + joint_section(inputs) +
                       origin_section(inputs),
                   inputs.reload_s, inputs.other_pages);
}

void write_report(const ReportInputs& inputs, const std::filesystem::path& html) {
  write_file(html, report_page(inputs));
}

void write_run_report(const std::filesystem::path& run_folder, const std::filesystem::path& html) {
  write_report(read_report_inputs(run_folder), html);
}

void refresh_run_report(const std::filesystem::path& folder) {
  const std::filesystem::path html = folder / "report.html";
  if (find_kind(html) == ArtifactKind::Page) write_run_report(folder, html);
}

}  // namespace medusa
