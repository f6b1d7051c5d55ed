#include "tools/report/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tools/report/axis.h"
#include "tools/report/html.h"
#include "tools/report/svg.h"

namespace medusa {
namespace {

constexpr double kTop = 14, kBottom = 44;  // pixels around the axes' rectangle
constexpr double kTickRoom = 92;           // pixels of width for one x tick
constexpr double kLabelHeight = 15;        // pixels from one series' name to the next

struct Bounds {
  double x_low = std::numeric_limits<double>::infinity(), x_high = -x_low;
  double y_low = x_low, y_high = -x_low;

  void add(const std::vector<PlotPoint>& points) {
    for (const PlotPoint& point : points) {
      x_low = std::min(x_low, point.x);
      x_high = std::max(x_high, point.x);
      y_low = std::min(y_low, point.y);
      y_high = std::max(y_high, point.y);
    }
  }
};

Bounds bounds_of(const Plot& plot) {
  Bounds bounds;
  for (const PlotSeries& series : plot.series) {
    bounds.add(series.line);
    bounds.add(series.dots);
  }
  if (plot.chosen) bounds.add({*plot.chosen});
  if (plot.x_from_zero) bounds.x_low = std::min(bounds.x_low, 0.0);
  if (plot.y_from_zero) bounds.y_low = std::min(bounds.y_low, 0.0);
  return bounds;
}

AxisTicks y_ticks(const Plot& plot, const Bounds& bounds) {
  const double unit = plot.y_is_share ? 100 : 1;
  AxisTicks ticks = round_ticks(unit * bounds.y_low, unit * bounds.y_high, 5);
  for (double& value : ticks.values) value /= unit;
  return ticks;
}

// Names are half bold, and bold where the font knows no halves: wider than text_width() thinks.
constexpr double kBold = 1.25;

/// Where the rectangle of the axes lies, and both scales.
struct Frame {
  double left, right, top, bottom;
  Scale x, y;
};

Frame make_frame(const Plot& plot, const AxisTicks& x, const AxisTicks& y, double width,
                 double height) {
  double tick_width = 0, name_width = 0;
  for (const std::string& label : y.labels) tick_width = std::max(tick_width, text_width(label));
  for (const PlotSeries& series : plot.series)
    name_width =
        std::max(name_width, series.name.empty() ? 0 : 10 + kBold * text_width(series.name));
  Frame frame;
  frame.left = 26 + tick_width;
  frame.right = width - std::max(name_width, 12.0);
  frame.top = kTop;
  frame.bottom = height - kBottom;
  frame.x = {x.values.front(), x.values.back(), frame.left, frame.right};
  frame.y = {y.values.front(), y.values.back(), frame.bottom, frame.top};
  return frame;
}

void draw_axes(Svg& svg, const Plot& plot, const Frame& frame, const AxisTicks& x,
               const AxisTicks& y) {
  for (size_t i = 0; i < y.values.size(); ++i) {
    const double at = frame.y(y.values[i]);
    svg.line(frame.left, at, frame.right, at, i == 0 ? "axis" : "grid");
    svg.text(frame.left - 7, at + 4, "tick end", y.labels[i]);
  }
  for (size_t i = 0; i < x.values.size(); ++i) {
    const double at = frame.x(x.values[i]);
    svg.line(at, frame.bottom, at, frame.bottom + 4, "axis");
    svg.text(at, frame.bottom + 18, "tick middle", x.labels[i]);
  }
  svg.text((frame.left + frame.right) / 2, frame.bottom + 38, "label middle", plot.x_label);
  svg.vertical_text(12, (frame.top + frame.bottom) / 2, "label", plot.y_label);
}

std::string color_class(const PlotSeries& series) {
  return fmt::format("c{}", series.color % kNumColors);
}

void draw_series(Svg& svg, const PlotSeries& series, const Frame& frame) {
  std::vector<std::pair<double, double>> pixels;
  for (const PlotPoint& point : series.line)
    pixels.emplace_back(frame.x(point.x), frame.y(point.y));
  if (pixels.size() > 1)
    svg.polyline(pixels, (series.faint ? "curve faint " : "curve ") + color_class(series));
  if (pixels.size() == 1)
    svg.circle(pixels[0].first, pixels[0].second, 2, "bar " + color_class(series));
  for (const PlotPoint& point : series.dots)
    svg.circle(frame.x(point.x), frame.y(point.y), 3.5, "dot " + color_class(series));
}

/// Names at the right ends of the lines, moved apart where lines end close together.
void draw_names(Svg& svg, const Plot& plot, const Frame& frame) {
  struct Name {
    double y;
    const PlotSeries* series;
  };
  std::vector<Name> names;
  for (const PlotSeries& series : plot.series) {
    if (series.name.empty() || (series.line.empty() && series.dots.empty())) continue;
    const PlotPoint& last = series.line.empty() ? series.dots.back() : series.line.back();
    names.push_back({frame.y(last.y), &series});
  }
  std::sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.y < b.y; });
  double lowest = frame.top;
  for (Name& name : names) {
    name.y = std::max(name.y, lowest);
    lowest = name.y + kLabelHeight;
  }
  double highest = frame.bottom;  // pushed below the axis: move back up
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    name->y = std::min(name->y, highest);
    highest = name->y - kLabelHeight;
  }
  for (const Name& name : names)
    svg.text(frame.right + 8, name.y + 4, "name " + color_class(*name.series), name.series->name);
}

void draw_chosen(Svg& svg, const Plot& plot, const Frame& frame) {
  const double x = frame.x(plot.chosen->x), y = frame.y(plot.chosen->y);
  svg.line(x, frame.bottom, x, y, "guide");
  svg.circle(x, y, 6, "chosen");
  // Beside the foot of the guide: curves that start at zero leave that corner free.
  const double rightmost = frame.right - text_width(plot.chosen_label, 13) - 6;
  svg.text(std::min(x + 8, rightmost), frame.bottom - 9, "strong", plot.chosen_label);
}

}  // namespace

std::string draw_plot(const Plot& plot, double width, double height) {
  const Bounds bounds = bounds_of(plot);
  if (bounds.x_low > bounds.x_high) return {};
  const int num_ticks = std::max(2, static_cast<int>(width / kTickRoom));
  const AxisTicks x = plot.x_is_count ? whole_ticks(bounds.x_low, bounds.x_high, num_ticks)
                                      : round_ticks(bounds.x_low, bounds.x_high, num_ticks);
  const AxisTicks y = y_ticks(plot, bounds);
  const Frame frame = make_frame(plot, x, y, width, height);
  Svg svg(width, height, plot.description);
  draw_axes(svg, plot, frame, x, y);
  for (const PlotSeries& series : plot.series) draw_series(svg, series, frame);
  draw_names(svg, plot, frame);
  if (plot.chosen) draw_chosen(svg, plot, frame);
  return svg.finish();
}

}  // namespace medusa
