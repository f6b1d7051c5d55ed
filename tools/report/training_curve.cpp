#include "tools/report/training_curve.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "tools/report/section_parts.h"
#include "tools/report/svg_plot.h"

namespace medusa {

TrainingCurve read_training_curve(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  TrainingCurve curve;
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // cut off by a kill
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    try {
      const auto json = nlohmann::json::parse(line);
      CurvePoint point;
      point.step = json.at("step").get<int64_t>();
      if (json.at("kind").get<std::string>() == "guard") {
        curve.guard.push_back({point.step, json.at("guard_kl_nats").get<double>(),
                               json.at("guard_perplexity").get<double>(),
                               json.at("guard_original_perplexity").get<double>(),
                               json.at("guard_greedy_match").get<double>()});
        continue;
      }
      point.loss = json.at("loss_nats").get<double>();
      point.head_top_1 = json.at("top_1").get<std::vector<double>>();
      if (json.contains("backbone_loss_nats"))
        point.backbone_loss = json["backbone_loss_nats"].get<double>();
      const bool train = json.at("kind").get<std::string>() == "train";
      (train ? curve.train : curve.validation).push_back(std::move(point));
    } catch (const nlohmann::json::exception& error) {
      throw UserError(fmt::format(
          "{}:{}: {}, expected a report of medusa train; remove the line or train again",
          file.string(), number, json_error_text(error.what())));
    }
  }
  return curve;
}

namespace {

/// An empty plot of shares, or of other values, against optimizer steps.
Plot plot_of_steps(const std::string& description, const std::string& y_label, bool y_is_share) {
  Plot plot;
  plot.description = description;
  plot.x_label = "optimizer steps";
  plot.x_from_zero = true;
  plot.y_label = y_label;
  plot.y_is_share = y_is_share;
  plot.y_from_zero = y_is_share;
  return plot;
}

std::string loss_plot(const TrainingCurve& curve, double width, double height) {
  Plot plot = plot_of_steps("Loss against optimizer steps", "loss (nats)", false);
  PlotSeries series{.name = {}, .color = 0, .line = {}, .dots = {}};
  for (const CurvePoint& point : curve.train)
    series.line.push_back({static_cast<double>(point.step), point.loss});
  for (const CurvePoint& point : curve.validation)
    series.dots.push_back({static_cast<double>(point.step), point.loss});
  plot.series = {series};
  return draw_plot(plot, width, height);
}

std::string accuracy_plot(const TrainingCurve& curve, double width, double height) {
  Plot plot = plot_of_steps("Share of positions whose token was a head's first draft, by head",
                            "first draft right (%)", true);
  const auto add = [&](const std::vector<CurvePoint>& points, auto PlotSeries::*where) {
    for (const CurvePoint& point : points)
      for (size_t k = 0; k < point.head_top_1.size(); ++k) {
        while (plot.series.size() <= k) {
          const int head = static_cast<int>(plot.series.size());
          plot.series.push_back(
              {.name = fmt::format("head {}", head), .color = head, .line = {}, .dots = {}});
        }
        (plot.series[k].*where).push_back({static_cast<double>(point.step), point.head_top_1[k]});
      }
  };
  add(curve.train, &PlotSeries::line);
  add(curve.validation, &PlotSeries::dots);
  return draw_plot(plot, width, height);
}

/// A picture of what the guard found, drawn in both widths.
struct GuardFigure {
  std::string title, description, y_label, caption;
  bool y_is_share = false;
};

PlotPoint at_step(const GuardPoint& point, double value) {
  return {static_cast<double>(point.step), value};
}

std::string guard_figure(const GuardFigure& text, std::vector<PlotSeries> series) {
  Plot plot = plot_of_steps(text.description, text.y_label, text.y_is_share);
  plot.series = std::move(series);
  return figure(text.title, draw_plot(plot, 490, 260), draw_plot(plot, 330, 230), text.caption);
}

PlotSeries guard_series(const TrainingCurve& curve, const std::string& name, int color,
                        double GuardPoint::*member) {
  PlotSeries series{.name = name, .color = color, .line = {}, .dots = {}};
  for (const GuardPoint& point : curve.guard) {
    series.line.push_back(at_step(point, point.*member));
    if (member != &GuardPoint::original_perplexity)
      series.dots.push_back(at_step(point, point.*member));
  }
  return series;
}

std::string backbone_loss_figure(const TrainingCurve& curve) {
  PlotSeries series{.name = {}, .color = 0, .line = {}, .dots = {}};
  for (const CurvePoint& point : curve.train)
    if (point.backbone_loss)
      series.line.push_back({static_cast<double>(point.step), *point.backbone_loss});
  return guard_figure(
      {"The backbone's own loss", "The backbone's loss against optimizer steps", "loss (nats)",
       "Training batches: KL from the backbone as it was, or the text's next token."},
      {series});
}

}  // namespace

std::string head_figures(const TrainingCurve& curve) {
  const std::string_view loss_caption =
      "Line: training batches, against their labels (soft ones: the model's own distribution). "
      "Circles: validation text, against its tokens.";
  const std::string_view caption = "Line: training batches. Circles: validation text.";
  return "<div class=\"pair\">\n" +
         figure("Loss", loss_plot(curve, 490, 300), loss_plot(curve, 330, 250), loss_caption) +
         figure("Accuracy of the first draft", accuracy_plot(curve, 490, 300),
                accuracy_plot(curve, 330, 270), caption) +
         "</div>\n";
}

std::string backbone_figures(const TrainingCurve& curve) {
  const std::string loss = backbone_loss_figure(curve);
  const std::string kl = guard_figure(
      {"Distance from what it was", "KL from the backbone as it was against optimizer steps",
       "KL (nats)", "On the samples that the guard watches, before each checkpoint."},
      {guard_series(curve, "", 1, &GuardPoint::kl)});
  const std::string perplexity =
      guard_figure({"Perplexity of the watched answers", "Perplexity against optimizer steps",
                    "perplexity", "By the backbone in training and by the backbone as it was."},
                   {guard_series(curve, "now", 2, &GuardPoint::perplexity),
                    guard_series(curve, "as it was", 3, &GuardPoint::original_perplexity)});
  const std::string same = guard_figure(
      {"Greedy answers that are the same", "Share of greedy answers that are the same",
       "the same (%)", "Token for token, of the answers to the watched prompts.", true},
      {guard_series(curve, "", 4, &GuardPoint::greedy_match)});
  if ((loss + kl + perplexity + same).empty()) return {};
  return "<div class=\"pair\">\n" + loss + kl + "</div>\n<div class=\"pair\">\n" + perplexity +
         same + "</div>\n";
}

}  // namespace medusa
