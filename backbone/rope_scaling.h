// Rotary embeddings stretched beyond the context that a model was first trained with: each of a
// head's D/2 frequencies is divided by a factor.
#pragma once

#include <cstdint>
#include <vector>

namespace medusa {

/// Llama 3.1's rule: frequencies whose wavelength is short beside the first context stay, long ones
/// are divided by the factor, those between are mixed.
struct Llama3Scaling {
  double factor = 1;
  double low_freq_factor = 1;   // wavelengths above first_context / this are long
  double high_freq_factor = 4;  // wavelengths below first_context / this are short
  double first_context = 0;     // tokens
};

/// @returns  [head_size / 2] divisors.
std::vector<double> llama3_factors(const Llama3Scaling& scaling, int64_t head_size, double base);

}  // namespace medusa
