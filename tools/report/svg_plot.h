// A line plot: one line per series, named at its right end, on labelled axes.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace medusa {

struct PlotPoint {
  double x = 0, y = 0;
};

struct PlotSeries {
  std::string name;             // written at the line's end; empty: not named
  int color = 0;                // number in the page's palette
  std::vector<PlotPoint> line;  // x ascending
  std::vector<PlotPoint> dots;  // drawn as circles in the same color
  bool faint = false;           // a background to another line
};

struct Plot {
  std::string description;       // one sentence
  std::string x_label, y_label;  // with the unit in brackets
  std::vector<PlotSeries> series;
  bool x_is_count = true;  // ticks at whole numbers, and the axis ends where the data does
  bool x_from_zero = false;
  bool y_from_zero = false;
  bool y_is_share = false;          // 0 to 1, shown as per cent
  std::optional<PlotPoint> chosen;  // marked and named
  std::string chosen_label;
};

/// @param width  CSS pixels. Texts keep their size: a narrow plot has fewer ticks, not smaller
/// ones.
/// @returns      an svg element; empty when no series has a point.
std::string draw_plot(const Plot& plot, double width, double height);

}  // namespace medusa
