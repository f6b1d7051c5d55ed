// Values with their intervals, one row each or several to a row, on a common axis.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace medusa {

struct IntervalChart {
  std::string description;
  std::string x_label;
  double reference = 1;  // a line is drawn here: what is to its right is better
  struct Mark {
    std::string name;  // for the tip
    int color = 0;     // number in the page's palette
    double value = 0;
    std::optional<std::pair<double, double>> interval;
  };
  struct Row {
    std::string name;
    std::vector<Mark> marks;  // at least one; below each other
  };
  std::vector<Row> rows;
};

/// A lone mark of a row has its value written beside it.
/// @param width  CSS pixels; the height follows from the rows.
/// @returns      an svg element; empty without rows.
std::string draw_interval_chart(const IntervalChart& chart, double width);

}  // namespace medusa
