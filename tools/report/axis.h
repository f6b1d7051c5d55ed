// Axes of the plots: round tick values and the way from data to pixels.
#pragma once

#include <string>
#include <vector>

namespace medusa {

struct AxisTicks {
  std::vector<double> values;  // ascending, at least two; the axis runs from the first to the last
  std::vector<std::string> labels;
};

/// Round values (1, 2, 2.5 or 5 times a power of ten) from at or below low to at or above high.
/// @param about  how many steps are wanted; a few more or less are taken.
AxisTicks round_ticks(double low, double high, int about);

/// The same for counts: no fractions, and the axis ends at low and high themselves.
AxisTicks whole_ticks(double low, double high, int about);

/// Linear; low and high differ.
struct Scale {
  double low = 0, high = 1;  // data
  double low_pixel = 0, high_pixel = 1;

  double operator()(double value) const {
    return low_pixel + (value - low) / (high - low) * (high_pixel - low_pixel);
  }
};

}  // namespace medusa
