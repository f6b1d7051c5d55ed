#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tools/profile/profile_result.h"
#include "tools/report/bar_chart.h"
#include "tools/report/html.h"
#include "tools/report/section_parts.h"
#include "tools/report/svg_plot.h"

namespace medusa {
namespace {

using Steps = std::vector<const ProfiledStep*>;  // of one context

/// What a bar shows: few enough for their names to stand side by side. The last one is what is
/// left.
struct Group {
  const char* name;
  std::vector<const char*> beginnings;  // of the names of its parts
};

const std::vector<Group>& groups(bool narrow) {
  static const std::vector<Group> kFew{
      {"attention", {"QKV", "rope", "cache", "attention", "output"}},
      {"MLP", {"gate", "activation", "down"}},
      {"LM head", {"LM head"}},
      {"rest", {}}};
  static const std::vector<Group> kMore{
      {"QKV", {"QKV", "rope", "cache"}},       {"attention", {"attention"}}, {"output", {"output"}},
      {"MLP", {"gate", "activation", "down"}}, {"LM head", {"LM head"}},     {"rest", {}}};
  return narrow ? kFew : kMore;
}

bool belongs(const std::string& part, const Group& group) {
  if (part.ends_with("norm")) return false;
  return std::any_of(group.beginnings.begin(), group.beginnings.end(),
                     [&](const char* beginning) { return part.starts_with(beginning); });
}

std::string bars(const Steps& steps, bool narrow) {
  StackedBars chart{.description = "Where the time of a step goes", .unit = "ms", .bars = {}};
  for (const ProfiledStep* step : steps) {
    StackedBars::Bar bar{fmt::format("{} row{}", step->rows, step->rows == 1 ? "" : "s"), {}};
    double left = step->ms();
    int color = 0;
    for (const Group& group : groups(narrow)) {
      double ms = group.beginnings.empty() ? left : 0;
      for (const ProfiledPart& part : step->parts)
        if (belongs(part.name, group)) ms += part.ms;
      left -= ms;
      bar.parts.push_back({group.name, color++, ms});
    }
    chart.bars.push_back(std::move(bar));
  }
  return draw_stacked_bars(chart, narrow ? kNarrowPicture : kWidePicture);
}

/// One line per part that has counted work and takes a hundredth of some step: its nearer roofline.
std::string roofline_plot(const Steps& steps, const Roofline& roofline, double width,
                          double height) {
  Plot plot;
  plot.description = "How near the parts of a step come to what the machine can do";
  plot.x_label = "rows";
  plot.y_label = "share of the roof (%)";
  plot.y_from_zero = plot.y_is_share = true;
  for (size_t i = 0; i < steps.front()->parts.size(); ++i) {
    PlotSeries series{steps.front()->parts[i].name, static_cast<int>(plot.series.size()), {}, {}};
    series.name = series.name.substr(0, series.name.find(','));
    for (const ProfiledStep* step : steps)
      series.line.push_back({static_cast<double>(step->rows),
                             std::min(1.0, shares_of(step->parts[i], roofline).larger())});
    series.dots = series.line;
    const bool counted = std::any_of(series.line.begin(), series.line.end(),
                                     [](const PlotPoint& point) { return point.y > 0.02; });
    const bool matters = std::any_of(steps.begin(), steps.end(), [i](const ProfiledStep* step) {
      return step->parts[i].ms > 0.01 * step->ms();
    });
    if (counted && matters) plot.series.push_back(std::move(series));
  }
  return draw_plot(plot, width, height);
}

std::string parts_table(const Steps& steps, const Roofline& roofline) {
  HtmlTable times, shares;
  times.header = shares.header = {"rows"};
  for (const ProfiledStep* step : steps) {
    times.header.push_back(std::to_string(step->rows));
    shares.header.push_back(std::to_string(step->rows));
  }
  for (size_t i = 0; i < steps.front()->parts.size(); ++i) {
    std::vector<std::string> ms{steps.front()->parts[i].name}, share = ms;
    for (const ProfiledStep* step : steps) {
      ms.push_back(fmt::format("{:.3f}", step->parts[i].ms));
      share.push_back(roofline_text(step->parts[i], roofline));
    }
    times.rows.push_back(std::move(ms));
    if (shares_of(steps.front()->parts[i], roofline).larger() > 0)
      shares.rows.push_back(std::move(share));
  }
  std::vector<std::string> sum{"step"};
  for (const ProfiledStep* step : steps) sum.push_back(fmt::format("{:.3f}", step->ms()));
  times.rows.push_back(std::move(sum));
  if (steps.front()->launches) {
    std::vector<std::string> kernels{"kernels started"}, ops{"LibTorch's ops"};
    for (const ProfiledStep* step : steps) {
      kernels.push_back(std::to_string(step->launches->kernels));
      ops.push_back(std::to_string(step->launches->ops));
    }
    times.rows.push_back(std::move(kernels));
    times.rows.push_back(std::move(ops));
  }
  return details_block("Milliseconds of every part", table(times)) +
         details_block("How much of the roof every part reaches", table(shares));
}

std::string context_section(const Profile& profile, const Steps& steps) {
  const int64_t context = steps.front()->context;
  return section(
      fmt::format("context-{}", context), fmt::format("Behind {} tokens", grouped(context)),
      "<div class=\"pair\">\n" +
          figure("Where a step's time goes", bars(steps, false), bars(steps, true),
                 "In ms. Rest: norms, embedding, drafting, acceptance, commit and the host.") +
          figure("How near to the roof", roofline_plot(steps, profile.roofline, kWidePicture, 380),
                 roofline_plot(steps, profile.roofline, kNarrowPicture, 320),
                 "The nearer of two roofs: bytes that must come from memory against its measured "
                 "bandwidth, multiplications and additions against the fastest large product.") +
          "</div>\n" + parts_table(steps, profile.roofline));
}

std::vector<Tile> headline(const Profile& profile) {
  const ProfiledStep& first = profile.steps.front();
  std::vector<Tile> tiles{{fmt::format("{:.2f}", first.ms()), "ms",
                           fmt::format("step of {} row{}", first.rows, first.rows == 1 ? "" : "s"),
                           fmt::format("behind {} tokens", first.context)}};
  for (const ProfiledStep& step : profile.steps)
    if (step.context == first.context && (step.rows == 16 || step.rows == 64))
      tiles.push_back({fmt::format("{:.2f}", step.ms() / first.ms()), "×",
                       fmt::format("step of {} rows", step.rows), "of that step's time"});
  tiles.push_back({fmt::format("{:.1f}", profile.roofline.bytes_per_s() / kGiga), "GB/s", "memory",
                   "the faster of reading and copying"});
  tiles.push_back({fmt::format("{:.0f}", profile.roofline.flops_per_s / kGiga), "GFLOP/s",
                   "products", "the fastest large one"});
  return tiles;
}

}  // namespace

std::string profile_page(const Profile& profile, const PageFrame& frame) {
  std::string body = tiles_html(headline(profile));
  for (const Steps& steps : by_context(profile)) body += context_section(profile, steps);
  return html_page("Where the time of a step goes",
                   fmt::format("{}. {} repetitions by turns, the middle half averaged; {}.{}{}",
                               profile.machine, profile.repeats,
                               profile.drafted ? "trees of the run's heads"
                                               : "chains of arbitrary tokens, not drafted",
                               frame.measured.empty() ? "" : " ", frame.measured),
                   body, 0, frame.links);
}

}  // namespace medusa
