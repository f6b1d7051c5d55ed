// Bars: groups of upright ones for a histogram, and stacked lying ones for parts of a whole.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace medusa {

/// Upright bars: for each category one bar per series, side by side, each with its share on top.
struct Histogram {
  std::string description;
  std::string x_label, y_label;
  std::vector<std::string> categories;
  struct Series {
    std::string name;
    int color = 0;               // number in the page's palette
    std::vector<double> shares;  // of each category, 0 to 1
  };
  std::vector<Series> series;
};
std::string draw_histogram(const Histogram& histogram, double width, double height);

/// Lying bars, one below the other, of a common scale.
struct StackedBars {
  std::string description;
  std::string unit;  // "ms"
  struct Part {
    std::string name;
    int color = 0;
    double value = 0;
  };
  struct Bar {
    std::string name;
    std::vector<Part> parts;
  };
  std::vector<Bar> bars;
};
std::string draw_stacked_bars(const StackedBars& chart, double width);

/// What the colors mean, as a line of HTML: pairs of name and color.
std::string color_legend(const std::vector<std::pair<std::string, int>>& entries);

}  // namespace medusa
