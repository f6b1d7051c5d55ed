#include "tools/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tools/report/html.h"

namespace medusa {
namespace {

double round_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0})
    if (factor * power >= 0.999 * rough) return factor * power;
  return 10 * power;
}

std::string tick_label(double value, double step) {
  if (step == std::round(step)) return grouped(std::llround(value));
  int decimals = 1;
  for (double scaled = 10 * step; decimals < 12 && std::abs(scaled - std::round(scaled)) > 1e-6;
       scaled *= 10)
    ++decimals;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

AxisTicks round_ticks(double low, double high, int about) {
  MEDUSA_ASSERT(low <= high && about >= 1, low, high, about);
  if (high - low < 1e-12 * std::max(1.0, std::abs(high))) {  // one value: give it some room
    const double room = high == 0 ? 1 : 0.1 * std::abs(high);
    low -= room;
    high += room;
  }
  const double step = round_step((high - low) / about);
  AxisTicks ticks;
  const auto first = static_cast<int64_t>(std::floor(low / step + 1e-9));
  const auto last = static_cast<int64_t>(std::ceil(high / step - 1e-9));
  for (int64_t i = first; i <= last; ++i) {
    ticks.values.push_back(static_cast<double>(i) * step);
    ticks.labels.push_back(tick_label(ticks.values.back(), step));
  }
  return ticks;
}

AxisTicks whole_ticks(double low, double high, int about) {
  MEDUSA_ASSERT(low <= high && about >= 1, low, high, about);
  if (high - low < 1) high = low + 1;
  const double step = std::ceil(round_step((high - low) / about));
  AxisTicks ticks{{low}, {grouped(std::llround(low))}};
  for (auto i = static_cast<int64_t>(std::floor(low / step)) + 1;
       static_cast<double>(i) * step < high; ++i) {
    const double value = static_cast<double>(i) * step;
    if (value - low < 0.5 * step || high - value < 0.5 * step) continue;  // would touch the ends'
    ticks.values.push_back(value);
    ticks.labels.push_back(grouped(std::llround(value)));
  }
  ticks.values.push_back(high);
  ticks.labels.push_back(grouped(std::llround(high)));
  return ticks;
}

}  // namespace medusa
