// The largest logits of a row and their log-probabilities, in one pass over it. No LibTorch.
#pragma once

#include <cstdint>
#include <span>

namespace medusa {

/// One logit and its place in the row.
struct ScoredRow {
  float logit = 0;
  int32_t row = 0;
};

/// Fills best with the best.size() largest logits, descending; of equal ones the lower index first.
/// @param logits  at least best.size() finite numbers.
/// @returns       log of the sum of e^logit over the row.
float top_k_drafts(std::span<const float> logits, std::span<ScoredRow> best);

}  // namespace medusa
