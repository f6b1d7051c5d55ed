#include "tools/report/interval_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/report/axis.h"
#include "tools/report/html.h"
#include "tools/report/svg.h"

namespace medusa {
namespace {

constexpr double kMarkHeight = 13;  // pixels from one mark of a row to the next
constexpr double kRowGap = 15;
constexpr double kChartTop = 6, kChartBottom = 44;
constexpr double kValueWidth = 42;  // room for a value beside the axes

double row_height(const IntervalChart::Row& row) {
  return kRowGap + kMarkHeight * static_cast<double>(row.marks.size());
}

bool has_values(const IntervalChart& chart) {
  return std::any_of(chart.rows.begin(), chart.rows.end(),
                     [](const auto& row) { return row.marks.size() == 1; });
}

AxisTicks ticks_of(const IntervalChart& chart, double pixels) {
  double low = chart.reference, high = chart.reference;
  for (const auto& row : chart.rows)
    for (const auto& mark : row.marks) {
      low = std::min({low, mark.value, mark.interval ? mark.interval->first : mark.value});
      high = std::max({high, mark.value, mark.interval ? mark.interval->second : mark.value});
    }
  return round_ticks(low, high, pixels < 260 ? 4 : 6);
}

std::string tip_of(const IntervalChart::Mark& mark) {
  std::string tip = fmt::format("{}: {:.2f}", mark.name, mark.value);
  if (mark.interval)
    tip += fmt::format(" ({:.2f} to {:.2f})", mark.interval->first, mark.interval->second);
  return tip;
}

void draw_mark(Svg& svg, const IntervalChart::Mark& mark, const Scale& x, double y) {
  const std::string color = fmt::format("c{}", mark.color % kNumColors);
  if (mark.interval)
    svg.polyline({{x(mark.interval->first), y}, {x(mark.interval->second), y}}, "curve " + color);
  svg.circle(x(mark.value), y, 4, "bar " + color, tip_of(mark));
}

}  // namespace

std::string draw_interval_chart(const IntervalChart& chart, double width) {
  if (chart.rows.empty()) return {};
  double name_width = 0, height = kChartTop + kChartBottom;
  for (const auto& row : chart.rows) {
    name_width = std::max(name_width, 1.1 * text_width(row.name));
    height += row_height(row);
  }
  const double left = name_width + 14, bottom = height - kChartBottom;
  const double right = width - (has_values(chart) ? kValueWidth : 12);
  const AxisTicks ticks = ticks_of(chart, right - left);
  const Scale x{ticks.values.front(), ticks.values.back(), left, right};

  Svg svg(width, height, chart.description);
  for (size_t i = 0; i < ticks.values.size(); ++i) {
    svg.line(x(ticks.values[i]), kChartTop, x(ticks.values[i]), bottom, "grid");
    svg.text(x(ticks.values[i]), bottom + 18, "tick middle", ticks.labels[i]);
  }
  svg.line(left, bottom, right, bottom, "axis");
  svg.line(x(chart.reference), kChartTop, x(chart.reference), bottom, "guide");
  double top = kChartTop;
  for (const auto& row : chart.rows) {
    if (top > kChartTop && row.marks.size() > 1) svg.line(0, top, right, top, "grid");
    const double middle = top + row_height(row) / 2;
    svg.text(left - 12, middle + 4, "name end", row.name);
    double y = top + kRowGap / 2 + kMarkHeight / 2;
    for (const auto& mark : row.marks) {
      draw_mark(svg, mark, x, y);
      y += kMarkHeight;
    }
    if (row.marks.size() == 1)
      svg.text(width, middle + 4, "value end", fmt::format("{:.2f}", row.marks[0].value));
    top += row_height(row);
  }
  svg.text((left + right) / 2, bottom + 38, "label middle", chart.x_label);
  return svg.finish();
}

}  // namespace medusa
