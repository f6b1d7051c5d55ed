// The first two tokens after a prompt: how often each pair should come, and how often it did.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "infer/sampling.h"
#include "tests/infer/toy_drafters.h"
#include "tests/reference/chi_square.h"
#include "tests/reference/distribution.h"

namespace medusa::fixtures {

/// Exact probability of each pair of tokens after the prompt.
inline std::vector<double> pair_probabilities(const std::vector<TokenId>& prompt,
                                              const SamplingConfig& sampling) {
  constexpr auto kVocab = static_cast<size_t>(kToyVocab);
  std::vector<double> out(kVocab * kVocab);
  const auto first = reference::distribution(toy_logits(prompt), sampling).probabilities;
  for (const auto& [a, p] : first) {
    std::vector<TokenId> context = prompt;
    context.push_back(a);
    const auto second = reference::distribution(toy_logits(context), sampling).probabilities;
    for (const auto& [b, q] : second)
      out[static_cast<size_t>(a) * kVocab + static_cast<size_t>(b)] = p * q;
  }
  return out;
}

/// Pairs of many seeds against their probabilities.
struct PairTest {
  double p = 0;  // of the chi-square test
  int64_t accepted = 0;
};

inline PairTest test_pairs(const AcceptanceRule& rule, const DrafterFactory& drafter,
                           const std::vector<TokenId>& prompt, const SamplingConfig& sampling,
                           uint64_t num_seeds) {
  PairTest out;
  std::vector<int64_t> counts(static_cast<size_t>(kToyVocab * kToyVocab), 0);
  for (uint64_t seed = 0; seed < num_seeds; ++seed) {
    const Decoded run = decode_toy(rule, drafter, prompt, {2, 64, {}}, seed);
    ++counts[static_cast<size_t>(run.text[0] * kToyVocab + run.text[1])];
    out.accepted += run.stats.accepted;
  }
  out.p = reference::chi_square_p(counts, pair_probabilities(prompt, sampling));
  return out;
}

}  // namespace medusa::fixtures
