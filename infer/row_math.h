// Passes over one row of logits, vectorised by the compiler for the machine they run on.
#pragma once

#include <cstdint>
#include <span>

namespace medusa {

/// The largest value; the row is not empty and holds no NaN.
float row_max(std::span<const float> row);

/// out[i] = exp(x) with x = (row[i] - max) * scale rounded to float, relative error below 3e-7; 0
/// where x < -87. Returns their sum.
/// @param max  of the row.
/// @param out  as long as row.
double row_exp(std::span<const float> row, float max, float scale, std::span<float> out);

/// The same sum without keeping the terms, and the sum of term * exponent: what an entropy needs.
struct ExpSums {
  double sum = 0;       // Σ e_i,       e_i = exp((row[i] - max) * scale)
  double weighted = 0;  // Σ e_i · (row[i] - max) · scale
};
ExpSums row_exp_sums(std::span<const float> row, float max, float scale);

}  // namespace medusa
