// Softmax, entropy and the exponential race, logit by logit: the slow twins of infer/row_math and
// infer/gumbel_max, which give the same bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "base/random.h"
#include "infer/gumbel_max.h"
#include "infer/row_math.h"

namespace medusa::reference {

/// a · b + c, rounded once where the compiler of row_math.cpp finds an instruction for it.
inline float multiply_add(float a, float b, float c) {
  static const bool fused = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return fused ? std::fma(a, b, c) : a * b + c;
}

/// e^exponent for exponents <= 0.
inline float weight(float exponent) {
  const float x = std::max(exponent, -87.0F);
  const auto whole = static_cast<int32_t>(multiply_add(x, 1.44269504F, -0.5F));
  const auto n = static_cast<float>(whole);
  const float f = multiply_add(n, 2.12194440e-4F, multiply_add(-n, 0.693359375F, x));
  float p = 1.0F / 720;
  for (const float next : {1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F})
    p = multiply_add(p, f, next);
  return exponent < -87 ? 0 : p * std::bit_cast<float>((whole + 127) << 23);
}

/// Chunk by chunk and, within a chunk, sixteen sums by place.
inline SoftmaxSums softmax_sums(std::span<const float> row, float scale) {
  SoftmaxSums out{.max = *std::max_element(row.begin(), row.end())};
  for (size_t first = 0; first < row.size(); first += kRowChunk) {
    double sums[16] = {}, products[16] = {};
    for (size_t i = first; i < std::min(row.size(), first + kRowChunk); ++i) {
      const float x = (row[i] - out.max) * scale, e = weight(x);
      sums[i % 16] += static_cast<double>(e);
      products[i % 16] += static_cast<double>(e * std::max(x, -87.0F));
    }
    double sum = 0, weighted = 0;
    for (const double each : sums) sum += each;
    for (const double each : products) weighted += each;
    out.sum += sum;
    out.weighted += weighted;
  }
  return out;
}

/// Everybody's arrival is computed; the most probable token wins among equal ones.
inline TokenId draw_from_row(std::span<const float> row, float scale, const Random& random,
                             RandomUse use, int64_t position) {
  const auto best = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
  const auto arrival = [&](size_t i) {
    const double u = std::max(random.uniform(use, position, i), 0x1.0p-60);
    return -std::log(u) / static_cast<double>(weight((row[i] - row[best]) * scale));
  };
  size_t winner = best;
  double time = arrival(best);
  for (size_t i = 0; i < row.size(); ++i)
    if (weight((row[i] - row[best]) * scale) > 0 && arrival(i) < time) {
      winner = i;
      time = arrival(i);
    }
  return static_cast<TokenId>(winner);
}

}  // namespace medusa::reference
