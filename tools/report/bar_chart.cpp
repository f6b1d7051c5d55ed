#include "tools/report/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/report/axis.h"
#include "tools/report/html.h"
#include "tools/report/svg.h"

namespace medusa {
namespace {

std::string fill_class(int color) { return fmt::format("bar c{}", color % kNumColors); }

/// The parts' names and values in one line, with equal gaps: narrow parts have no room for theirs.
void draw_values(Svg& svg, const StackedBars::Bar& bar, double width, double baseline) {
  const double font_size = width < 400 ? 10 : 11;
  constexpr double kBold = 1.14;  // wider than text_width() thinks
  std::vector<std::string> texts;
  double used = 0;
  for (const auto& part : bar.parts) {
    texts.push_back(fmt::format("{} {:.2f}", part.name, part.value));
    used += kBold * text_width(texts.back(), font_size);
  }
  const double gap = (width - used) / static_cast<double>(std::max<size_t>(texts.size(), 2) - 1);
  double x = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const bool last = i > 0 && i + 1 == texts.size();
    svg.text(last ? width : x, baseline,
             fmt::format("part c{}{}", bar.parts[i].color % kNumColors, last ? " end" : ""),
             texts[i], font_size);
    x += kBold * text_width(texts[i], font_size) + gap;
  }
}

double total(const StackedBars::Bar& bar) {
  double sum = 0;
  for (const auto& part : bar.parts) sum += part.value;
  return sum;
}

}  // namespace

std::string draw_histogram(const Histogram& histogram, double width, double height) {
  if (histogram.categories.empty() || histogram.series.empty()) return {};
  double most = 0;
  for (const auto& series : histogram.series)
    for (const double share : series.shares) most = std::max(most, share);
  const AxisTicks ticks = round_ticks(0, 100 * std::max(most, 0.01), 4);
  const double left = 52, right = width - 8, top = 20, bottom = height - 44;
  const Scale y{0, ticks.values.back() / 100, bottom, top};

  Svg svg(width, height, histogram.description);
  for (size_t i = 0; i < ticks.values.size(); ++i) {
    const double at = y(ticks.values[i] / 100);
    svg.line(left, at, right, at, i == 0 ? "axis" : "grid");
    svg.text(left - 7, at + 4, "tick end", ticks.labels[i]);
  }
  const double group = (right - left) / static_cast<double>(histogram.categories.size());
  const double bar = std::min(46.0, 0.8 * group / static_cast<double>(histogram.series.size()));
  for (size_t i = 0; i < histogram.categories.size(); ++i) {
    const double center = left + (static_cast<double>(i) + 0.5) * group;
    svg.text(center, bottom + 18, "tick middle", histogram.categories[i]);
    double x = center - bar * static_cast<double>(histogram.series.size()) / 2;
    for (const auto& series : histogram.series) {
      const double share = i < series.shares.size() ? series.shares[i] : 0;
      const std::string tip = fmt::format("{}: {} of the steps", series.name, percent(share));
      svg.rect(x + 1, y(share), bar - 2, bottom - y(share), fill_class(series.color), tip);
      if (bar >= 20)
        svg.text(x + bar / 2, y(share) - 5, "value middle", fmt::format("{:.0f}", 100 * share));
      x += bar;
    }
  }
  svg.text((left + right) / 2, bottom + 38, "label middle", histogram.x_label);
  svg.vertical_text(12, (top + bottom) / 2, "label", histogram.y_label);
  return svg.finish();
}

std::string draw_stacked_bars(const StackedBars& chart, double width) {
  if (chart.bars.empty()) return {};
  constexpr double kRow = 78, kBarTop = 22, kBarHeight = 26;
  double most = 0;
  for (const auto& bar : chart.bars) most = std::max(most, total(bar));
  if (most <= 0) return {};
  const Scale x{0, most, 0, width};
  Svg svg(width, kRow * static_cast<double>(chart.bars.size()) - 12, chart.description);
  double row = 0;
  for (const auto& bar : chart.bars) {
    svg.text(0, row + 14, "name", bar.name);
    svg.text(width, row + 14, "value end", fmt::format("{:.2f} {}", total(bar), chart.unit));
    double begin = 0;
    for (const auto& part : bar.parts) {
      const double from = x(begin), pixels = x(begin + part.value) - from;
      const std::string value = fmt::format("{:.2f}", part.value);
      svg.rect(from, row + kBarTop, std::max(0.0, pixels - 1), kBarHeight, fill_class(part.color),
               fmt::format("{}: {} {}, {}", part.name, value, chart.unit,
                           percent(part.value / total(bar))));
      begin += part.value;
    }
    draw_values(svg, bar, width, row + kBarTop + kBarHeight + 15);
    row += kRow;
  }
  return svg.finish();
}

std::string color_legend(const std::vector<std::pair<std::string, int>>& entries) {
  std::string html = "<p class=\"legend\">";
  for (const auto& [name, color] : entries)
    html += fmt::format("<span><i class=\"key c{}\"></i>{}</span> ", color % kNumColors,
                        escape_html(name));
  return html + "</p>\n";
}

}  // namespace medusa
