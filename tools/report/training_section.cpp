// How the heads were trained and how well they draft.
#include <fmt/format.h>

#include "tools/report/html.h"
#include "tools/report/report.h"
#include "tools/report/training_curve.h"

namespace medusa {
namespace {

std::string quality_table(const HeadsManifest& heads) {
  if (heads.quality.empty()) return paragraph("These heads were not validated.", "absent");
  HtmlTable out{{"", "top 1", "top 5", "top 10", "loss"}, {}};
  for (size_t k = 0; k < heads.quality.size(); ++k) {
    const HeadQuality& head = heads.quality[k];
    out.rows.push_back({fmt::format("head {}", k), percent(head.top_1), percent(head.top_5),
                        percent(head.top_10), fmt::format("{:.3f} nats", head.loss)});
  }
  return "<h3>How often the right token is among a head's best drafts</h3>\n" + table(out) +
         paragraph(fmt::format("{} validation positions. Head k drafts the token k + 1 places "
                               "after the newest one.",
                               grouped(heads.num_validation)),
                   "note");
}

std::string description(const HeadsManifest& heads) {
  const HeadsConfig& config = heads.config;
  std::string text =
      fmt::format("{} heads of {} residual layer{}, input {}, output {}", config.num_heads,
                  config.layers_per_head, config.layers_per_head == 1 ? "" : "s",
                  enum_name(config.input), enum_name(config.output));
  if (is_truncated(config.output))
    text +=
        fmt::format(" ({} of {} tokens)", grouped(config.output_size), grouped(heads.vocab_size));
  if (is_low_rank(config.output)) text += fmt::format(" of rank {}", config.output_rank);
  if (config.correction_rank > 0)
    text += fmt::format(", corrected by factors of rank {}", config.correction_rank);
  if (config.start == HeadStart::LastLayer) text += ", begun as the backbone's last layer";
  return paragraph(text + fmt::format("; {} optimizer steps.", grouped(heads.step)));
}

}  // namespace

std::string training_section(const ReportInputs& inputs) {
  std::string body;
  if (inputs.heads.value) body += description(*inputs.heads.value);
  body += inputs.training.value ? head_figures(*inputs.training.value)
                                : paragraph(inputs.training.absence, "absent");
  body += inputs.heads.value ? quality_table(*inputs.heads.value)
                             : paragraph(inputs.heads.absence, "absent");
  return section("training", "Training of the heads", body);
}

}  // namespace medusa
