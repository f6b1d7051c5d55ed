#include "infer/row_math.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/check.h"
#include "base/lanes.h"

namespace medusa {
namespace {

constexpr size_t kSums = 16;  // independent accumulators, so that the compiler may use vectors

constexpr float kLowest = -87.0F;  // exp of less is smaller than any normal float: taken as 0

/// exp(x) for x <= 0 by 2^n · p(f): n = round(x / ln 2), |f| <= ln 2 / 2, p of degree 6.
inline float fast_exp(float exponent) {
  const float x = std::max(exponent, kLowest);
  const float n = static_cast<float>(static_cast<int32_t>(x * 1.44269504F - 0.5F));
  const float f = (x - n * 0.693359375F) + n * 2.12194440e-4F;  // ln 2 in two parts
  float p = 1.0F / 720;
  p = p * f + 1.0F / 120;
  p = p * f + 1.0F / 24;
  p = p * f + 1.0F / 6;
  p = p * f + 0.5F;
  p = p * f + 1.0F;
  p = p * f + 1.0F;
  const float result = p * std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
  return exponent < kLowest ? 0.0F : result;
}

MEDUSA_WIDE float max_of(const float* row, size_t n) {
  float lanes[kSums];
  std::fill(lanes, lanes + kSums, row[0]);
  size_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (size_t j = 0; j < kSums; ++j) lanes[j] = row[i + j] > lanes[j] ? row[i + j] : lanes[j];
  for (; i < n; ++i) lanes[0] = std::max(lanes[0], row[i]);
  return *std::max_element(lanes, lanes + kSums);
}

MEDUSA_WIDE double exp_of(const float* row, size_t n, float max, float scale, float* out) {
  double lanes[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (size_t j = 0; j < kSums; ++j) {
      out[i + j] = fast_exp((row[i + j] - max) * scale);
      lanes[j] += static_cast<double>(out[i + j]);
    }
  for (; i < n; ++i) {
    out[i] = fast_exp((row[i] - max) * scale);
    lanes[0] += static_cast<double>(out[i]);
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

MEDUSA_WIDE void sums_of(const float* row, size_t n, float max, float scale, double* sum,
                         double* weighted) {
  double sums[kSums] = {}, products[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (size_t j = 0; j < kSums; ++j) {
      const float x = (row[i + j] - max) * scale;
      const float e = fast_exp(x);
      sums[j] += static_cast<double>(e);
      products[j] += static_cast<double>(e * std::max(x, kLowest));  // never 0 · -inf
    }
  for (; i < n; ++i) {
    const float x = (row[i] - max) * scale;
    const float e = fast_exp(x);
    sums[0] += static_cast<double>(e);
    products[0] += static_cast<double>(e * std::max(x, kLowest));
  }
  for (size_t j = 0; j < kSums; ++j) {
    *sum += sums[j];
    *weighted += products[j];
  }
}

}  // namespace

float row_max(std::span<const float> row) {
  MEDUSA_ASSERT(!row.empty());
  return max_of(row.data(), row.size());
}

double row_exp(std::span<const float> row, float max, float scale, std::span<float> out) {
  MEDUSA_ASSERT(out.size() == row.size(), out.size(), row.size());
  return exp_of(row.data(), row.size(), max, scale, out.data());
}

ExpSums row_exp_sums(std::span<const float> row, float max, float scale) {
  ExpSums sums;
  sums_of(row.data(), row.size(), max, scale, &sums.sum, &sums.weighted);
  return sums;
}

}  // namespace medusa
