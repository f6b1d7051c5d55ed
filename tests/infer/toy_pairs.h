// The first two tokens after a prompt: how often each pair should come, and how often it did.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <vector>

#include "infer/sampling.h"
#include "tests/infer/toy_drafters.h"
#include "tests/reference/chi_square.h"
#include "tests/reference/distribution.h"

namespace medusa::fixtures {

/// How many times as many seeds tests of distributions draw: 1, but in the slow run.
inline uint64_t times_more_seeds() {
  const char* set = std::getenv("MEDUSA_TIMES_MORE_SEEDS");
  return set == nullptr ? 1 : std::strtoull(set, nullptr, 10);
}

/// A test of distributions fails below. Of the slow run's some forty tests one may lie below .01 by
/// chance; a wrong distribution of 480,000 pairs has a p of no size at all.
inline double least_p() { return times_more_seeds() > 1 ? 1e-4 : .01; }

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

/// Pairs of many seeds against their probabilities. The seeds are the same in every run.
struct PairTest {
  double p = 0;  // of the chi-square test
  int64_t accepted = 0;
};

inline PairTest test_pairs(const AcceptanceRule& rule, const DrafterFactory& drafter,
                           const std::vector<TokenId>& prompt, const SamplingConfig& sampling,
                           uint64_t num_seeds) {
  num_seeds *= times_more_seeds();
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
