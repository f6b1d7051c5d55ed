#include "tools/report/report.h"

#include <fmt/format.h>

#include "base/file.h"
#include "tools/report/html.h"
#include "tools/report/report_inputs.h"
#include "tools/report/sections.h"
#include "tools/report/style.h"

namespace medusa {
namespace {

std::string machine_of(const ReportInputs& inputs) {
  if (inputs.comparison.value && !inputs.comparison.value->machine.empty())
    return inputs.comparison.value->machine;
  if (inputs.tree.value && inputs.tree.value->calibration)
    return inputs.tree.value->calibration->machine;
  return {};
}

std::string page_header(const ReportInputs& inputs) {
  const std::string machine = machine_of(inputs);
  return fmt::format("<header>\n<h1>{}</h1>\n{}</header>\n",
                     escape_html("Medusa run: " + inputs.run),
                     machine.empty() ? "" : paragraph(machine, "note"));
}

}  // namespace

std::string report_page(const ReportInputs& inputs) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>{}</title>\n<style>\n{}</style>\n"
      "</head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
      escape_html("Medusa run: " + inputs.run), style_sheet(),
      page_header(inputs) + headline_section(inputs) + comparison_section(inputs) +
          tree_section(inputs) + training_section(inputs) + origin_section(inputs));
}

void write_report(const ReportInputs& inputs, const std::filesystem::path& html) {
  write_file(html, report_page(inputs));
}

void write_run_report(const std::filesystem::path& run_folder, const std::filesystem::path& html) {
  write_report(read_report_inputs(run_folder), html);
}

}  // namespace medusa
