#include "backbone/rope_scaling.h"

#include <cmath>
#include <numbers>

namespace medusa {

std::vector<double> llama3_factors(const Llama3Scaling& scaling, int64_t head_size, double base) {
  std::vector<double> factors;
  for (int64_t i = 0; i < head_size / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(head_size);
    const double wavelength = 2 * std::numbers::pi * std::pow(base, exponent);
    const double turns = scaling.first_context / wavelength;  // within the first context
    if (turns > scaling.high_freq_factor) {
      factors.push_back(1);
    } else if (turns < scaling.low_freq_factor) {
      factors.push_back(scaling.factor);
    } else {
      const double kept =
          (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
      factors.push_back(1 / ((1 - kept) / scaling.factor + kept));
    }
  }
  return factors;
}

}  // namespace medusa
