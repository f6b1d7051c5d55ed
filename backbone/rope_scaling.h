// Rotary embeddings stretched beyond the context that a model was first trained with: each of a
// head's D/2 frequencies is divided by a factor, and in some rules queries and keys grow a little.
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

/// YaRN (Peng et al., arXiv:2309.00071) §3.2: dimensions that rotate often within the first context
/// stay, those that rotate rarely are divided by the factor, and there is a ramp between them.
struct YarnScaling {
  double factor = 1;
  double first_context = 0;  // tokens
  double beta_fast = 32;     // rotations within the first context from which on a dimension stays
  double beta_slow = 1;      // rotations up to which it is divided by the whole factor
  bool truncate = true;      // the ramp begins and ends at whole dimensions
};

/// @returns  [head_size / 2] divisors.
std::vector<double> yarn_factors(const YarnScaling& scaling, int64_t head_size, double base);

/// What YaRN multiplies cosines and sines by (§3.4, the root of its 1/t).
/// @param weight  of the logarithm; some models give their own.
double yarn_attention(double factor, double weight = 1);

/// The same of LongRoPE (Ding et al., arXiv:2402.13753).
/// @param factor  the longest context ÷ the first.
double longrope_attention(double factor, double first_context);

}  // namespace medusa
