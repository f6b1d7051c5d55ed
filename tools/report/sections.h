// The sections of the report, each as HTML. A section whose artefact is absent says so in a
// sentence instead.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/report/report_inputs.h"

namespace medusa {

std::string headline_section(const ReportInputs& inputs);
std::string comparison_section(const ReportInputs& inputs);  // table, accepted lengths, step times
std::string tree_section(const ReportInputs& inputs);        // picture, sizes, most frequent paths
std::string training_section(const ReportInputs& inputs);    // curves, accuracies
std::string origin_section(const ReportInputs& inputs);      // dataset, fingerprints, settings

/// A card with a title. @param id  for links;  @param body  HTML.
std::string section(std::string_view id, std::string_view title, const std::string& body);

/// A paragraph. @param text  plain text, escaped here.
std::string paragraph(std::string_view text, std::string_view css_class = {});

/// A picture with a caption, drawn twice: for wide and for narrow pages. The style sheet shows one
/// of them. @param extra  HTML between the two, such as a legend.
std::string figure(std::string_view title, const std::string& wide, const std::string& narrow,
                   std::string_view caption, const std::string& extra = {});

/// Rows of a table; the first cell of a row is its heading. All texts are escaped here.
struct HtmlTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
std::string table(const HtmlTable& table);

/// Rows become columns: for tables wider than a phone.
HtmlTable transposed(const HtmlTable& table);

}  // namespace medusa
