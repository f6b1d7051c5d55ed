#include "backbone/files/fp8.h"

#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace medusa {
namespace {

float decode(int bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float size = 0;
  if (exponent == 15 && mantissa == 7)
    size = std::numeric_limits<float>::quiet_NaN();
  else if (exponent == 0)
    size = std::ldexp(static_cast<float>(mantissa), -9);
  else
    size = std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (bits & 128) != 0 ? -size : size;
}

const std::array<float, 256>& all_numbers() {
  static const std::array<float, 256> numbers = [] {
    std::array<float, 256> out{};
    for (int bits = 0; bits < 256; ++bits) out[static_cast<size_t>(bits)] = decode(bits);
    return out;
  }();
  return numbers;
}

}  // namespace

void decode_fp8_row(const Fp8Scales& scales, int64_t row, std::span<const uint8_t> bytes,
                    std::span<float> out) {
  MEDUSA_ASSERT(bytes.size() == out.size(), bytes.size(), out.size());
  const std::array<float, 256>& numbers = all_numbers();
  for (size_t i = 0; i < bytes.size(); ++i) out[i] = numbers[bytes[i]];
  if (scales.scales.empty()) return;
  const size_t block = kFp8Block, in_row = (bytes.size() + block - 1) / block;
  const size_t first = static_cast<size_t>(row) / block * in_row;
  MEDUSA_ASSERT(first + in_row <= scales.scales.size(), row, scales.scales.size());
  for (size_t i = 0; i < bytes.size(); ++i) out[i] *= scales.scales[first + i / block];
}

}  // namespace medusa
