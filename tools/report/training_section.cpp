// How the heads were trained and how well they guess.
#include <fmt/format.h>

#include <algorithm>

#include "tools/report/html.h"
#include "tools/report/sections.h"
#include "tools/report/svg_plot.h"

namespace medusa {
namespace {

std::string loss_plot(const TrainingCurve& curve, double width, double height) {
  Plot plot;
  plot.description = "Loss against optimiser steps";
  plot.x_label = "optimiser steps";
  plot.x_from_zero = true;
  plot.y_label = "loss (nats)";
  PlotSeries series{.name = {}, .colour = 0, .line = {}, .dots = {}};
  for (const CurvePoint& point : curve.train)
    series.line.push_back({static_cast<double>(point.step), point.loss});
  for (const CurvePoint& point : curve.validation)
    series.dots.push_back({static_cast<double>(point.step), point.loss});
  plot.series = {series};
  return draw_plot(plot, width, height);
}

std::string accuracy_plot(const TrainingCurve& curve, double width, double height) {
  Plot plot;
  plot.description = "Share of positions whose token was a head's first guess, by head";
  plot.x_label = "optimiser steps";
  plot.x_from_zero = true;
  plot.y_label = "first guess right (%)";
  plot.y_is_share = true;
  plot.y_from_zero = true;
  const auto add = [&](const std::vector<CurvePoint>& points, auto PlotSeries::*where) {
    for (const CurvePoint& point : points)
      for (size_t k = 0; k < point.head_top_1.size(); ++k) {
        while (plot.series.size() <= k) {
          const int head = static_cast<int>(plot.series.size());
          plot.series.push_back(
              {.name = fmt::format("head {}", head), .colour = head, .line = {}, .dots = {}});
        }
        (plot.series[k].*where).push_back({static_cast<double>(point.step), point.head_top_1[k]});
      }
  };
  add(curve.train, &PlotSeries::line);
  add(curve.validation, &PlotSeries::dots);
  return draw_plot(plot, width, height);
}

std::string curves(const TrainingCurve& curve) {
  const std::string_view loss_caption =
      "Line: training batches, against their labels (soft ones: the model's own distribution). "
      "Circles: validation text, against its tokens.";
  const std::string_view caption = "Line: training batches. Circles: validation text.";
  return "<div class=\"pair\">\n" +
         figure("Loss", loss_plot(curve, 490, 300), loss_plot(curve, 330, 250), loss_caption) +
         figure("Accuracy of the first guess", accuracy_plot(curve, 490, 300),
                accuracy_plot(curve, 330, 270), caption) +
         "</div>\n";
}

std::string quality_table(const HeadsManifest& heads) {
  if (heads.quality.empty()) return paragraph("These heads were not validated.", "absent");
  HtmlTable out{{"", "top 1", "top 5", "top 10", "loss"}, {}};
  for (size_t k = 0; k < heads.quality.size(); ++k) {
    const HeadQuality& head = heads.quality[k];
    out.rows.push_back({fmt::format("head {}", k), percent(head.top_1), percent(head.top_5),
                        percent(head.top_10), fmt::format("{:.3f} nats", head.loss)});
  }
  return "<h3>How often the right token is among a head's best guesses</h3>\n" + table(out) +
         paragraph(fmt::format("{} validation positions. Head k guesses the token k + 1 places "
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
  return paragraph(text + fmt::format("; {} optimiser steps.", grouped(heads.step)));
}

}  // namespace

std::string training_section(const ReportInputs& inputs) {
  std::string body;
  if (inputs.heads.value) body += description(*inputs.heads.value);
  body += inputs.training.value ? curves(*inputs.training.value)
                                : paragraph(inputs.training.absence, "absent");
  body += inputs.heads.value ? quality_table(*inputs.heads.value)
                             : paragraph(inputs.heads.absence, "absent");
  return section("training", "Training of the heads", body);
}

}  // namespace medusa
