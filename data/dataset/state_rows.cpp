#include "data/dataset/state_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace medusa {
namespace {

constexpr float kMostLevel = 127;

float float_of_bfloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// To the nearest, to even where two are.
uint16_t bfloat16_of_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace

Int8Rows round_rows(std::span<const uint16_t> rows, int64_t width) {
  const auto h = static_cast<size_t>(width);
  MEDUSA_ASSERT(width > 0 && rows.size() % h == 0, rows.size(), width);
  Int8Rows out;
  out.levels.reserve(rows.size());
  for (size_t begin = 0; begin < rows.size(); begin += h) {
    float largest = 0;
    bool finite = true;
    for (const uint16_t bits : rows.subspan(begin, h)) {
      largest = std::max(largest, std::abs(float_of_bfloat16(bits)));
      finite = finite && std::isfinite(float_of_bfloat16(bits));
    }
    const float scale = finite ? largest / kMostLevel : std::nanf("");
    out.scales.push_back(scale);
    const bool usable = finite && scale > 0;
    for (const uint16_t bits : rows.subspan(begin, h))
      out.levels.push_back(
          usable ? static_cast<int8_t>(std::clamp(std::nearbyint(float_of_bfloat16(bits) / scale),
                                                  -kMostLevel, kMostLevel))
                 : int8_t{0});
  }
  return out;
}

void unround_rows(std::span<const int8_t> levels, std::span<const float> scales,
                  std::span<uint16_t> out) {
  MEDUSA_ASSERT(levels.size() == out.size(), levels.size(), out.size());
  const size_t h = scales.empty() ? 0 : levels.size() / scales.size();
  MEDUSA_ASSERT(levels.size() == h * scales.size(), levels.size(), scales.size());
  for (size_t i = 0; i < levels.size(); ++i)
    out[i] = bfloat16_of_float(static_cast<float>(levels[i]) * scales[i / h]);
}

}  // namespace medusa
