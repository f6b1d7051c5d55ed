#include "backbone/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace medusa {

std::vector<double> llama3_factors(const Llama3Scaling& scaling, int64_t head_size, double base) {
  std::vector<double> factors;
  for (int64_t i = 0; i < head_size / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(head_size);
    const double wavelength = 2 * std::numbers::pi * std::pow(base, exponent);
    const double rotations = scaling.first_context / wavelength;  // within the first context
    if (rotations > scaling.high_freq_factor) {
      factors.push_back(1);
    } else if (rotations < scaling.low_freq_factor) {
      factors.push_back(scaling.factor);
    } else {
      const double kept = (rotations - scaling.low_freq_factor) /
                          (scaling.high_freq_factor - scaling.low_freq_factor);
      factors.push_back(1 / ((1 - kept) / scaling.factor + kept));
    }
  }
  return factors;
}

std::vector<double> yarn_factors(const YarnScaling& scaling, int64_t head_size, double base) {
  const auto size = static_cast<double>(head_size);
  // The dimension that rotates so often within the first context; not a whole number.
  const auto dimension = [&](double rotations) {
    return size * std::log(scaling.first_context / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(base));
  };
  double low = dimension(scaling.beta_fast), high = dimension(scaling.beta_slow);
  if (scaling.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, size - 1);
  if (low == high) high += 0.001;  // as the authors' code does, for a ramp that is a step
  std::vector<double> factors;
  for (int64_t i = 0; i < head_size / 2; ++i) {
    const double divided = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    factors.push_back(1 / (divided / scaling.factor + (1 - divided)));
  }
  return factors;
}

double yarn_attention(double factor, double weight) {
  return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1;
}

double longrope_attention(double factor, double first_context) {
  return factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(first_context));
}

}  // namespace medusa
