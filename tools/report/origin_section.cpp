// Where everything came from: text, fingerprints, settings.
#include <fmt/format.h>

#include "base/fingerprint.h"
#include "tools/report/html.h"
#include "tools/report/report.h"

namespace medusa {
namespace {

std::string states_text(const DatasetSummary& dataset) {
  if (dataset.num_hidden == 0) return "its states are not recorded";
  const std::string which = dataset.num_hidden == dataset.num_samples
                                ? "its states"
                                : fmt::format("the states of {}", grouped(dataset.num_hidden));
  return fmt::format("{} of {} numbers are recorded in {}", which,
                     grouped(dataset.info.hidden_size), enum_name(dataset.info.states));
}

std::string dataset_text(const DatasetSummary& dataset) {
  const double mean = dataset.num_samples == 0 ? 0
                                               : static_cast<double>(dataset.num_answer_tokens) /
                                                     static_cast<double>(dataset.num_samples);
  return fmt::format(
      "{} answers with {} tokens that the model wrote itself, {:.0f} tokens each on average; {}.{}",
      grouped(dataset.num_samples), grouped(dataset.num_answer_tokens), mean, states_text(dataset),
      dataset.complete ? "" : " The dataset is not finished yet.");
}

/// Collects "what: fingerprint" rows; the third column says whether artifacts fit together.
class Fingerprints {
 public:
  void add(const std::string& name, const std::string& fingerprint,
           const std::string& remark = {}) {
    if (!fingerprint.empty()) rows_.rows.push_back({name, short_fingerprint(fingerprint), remark});
  }
  static std::string compared(const std::string& named, const std::string& actual) {
    return named == actual ? "the one above" : "another one than above";
  }
  std::string html() const { return rows_.rows.empty() ? "" : table(rows_); }

 private:
  HtmlTable rows_{{"", "fingerprint", ""}, {}};
};

std::string fingerprints(const ReportInputs& inputs) {
  Fingerprints out;
  if (inputs.dataset.value) {
    out.add("dataset", inputs.dataset.value->fingerprint);
    out.add("dataset: backbone", inputs.dataset.value->info.backbone);
    out.add("dataset: tokenizer", inputs.dataset.value->info.tokenizer);
    out.add("dataset: prompts", inputs.dataset.value->info.prompts);
  }
  if (inputs.heads.value) {
    const HeadsManifest& heads = *inputs.heads.value;
    out.add("heads", heads.fingerprint);
    const bool known = inputs.dataset.value.has_value();
    out.add(
        "heads: backbone", heads.backbone,
        known ? Fingerprints::compared(heads.backbone, inputs.dataset.value->info.backbone) : "");
    out.add("heads: dataset", heads.dataset,
            known ? Fingerprints::compared(heads.dataset, inputs.dataset.value->fingerprint) : "");
  }
  if (inputs.tree.value)
    out.add("tree: heads", inputs.tree.value->heads,
            inputs.heads.value
                ? Fingerprints::compared(inputs.tree.value->heads, inputs.heads.value->fingerprint)
                : "");
  if (inputs.comparison.value) {
    const ReportedComparison& comparison = *inputs.comparison.value;
    const auto remark = [&](const std::string& named, std::string HeadsManifest::*actual) {
      return inputs.heads.value ? Fingerprints::compared(named, (*inputs.heads.value).*actual) : "";
    };
    out.add("comparison: backbone", comparison.backbone,
            remark(comparison.backbone, &HeadsManifest::backbone));
    out.add("comparison: heads", comparison.heads,
            remark(comparison.heads, &HeadsManifest::fingerprint));
  }
  return out.html();
}

}  // namespace

std::string origin_section(const ReportInputs& inputs) {
  std::string body = inputs.dataset.value ? paragraph(dataset_text(*inputs.dataset.value))
                                          : paragraph(inputs.dataset.absence, "absent");
  if (const std::string rows = fingerprints(inputs); !rows.empty())
    body += details_block("Fingerprints: what was made from what", rows);
  if (inputs.dataset.value)
    body +=
        details_block("Settings of the dataset", preformatted(inputs.dataset.value->info.sampling));
  if (!inputs.settings.empty())
    body += details_block("All settings of the run", preformatted(inputs.settings));
  return section("origin", "Text, settings and fingerprints", body);
}

}  // namespace medusa
