// What heads are worth to decoding, in one number: tokens per step, counted on text.
#pragma once

#include <cstdint>
#include <span>

#include "backbone/weights.h"
#include "data/dataset/dataset_reader.h"
#include "heads/medusa_heads.h"
#include "train/samples/hidden_source.h"

namespace medusa {

/// Answers to count on.
struct ExpectedTokensText {
  const DatasetReader& dataset;
  std::span<const int64_t> samples;
  const HiddenSource& hidden;
  int64_t most_positions = 4096;
};

/// Tokens per step of the best tree of 32 nodes, its root included, replayed on the answers
/// (heads/tree/tree_search.h); the tree is chosen on the same answers. 0 if none is long enough.
double expected_tokens_per_step(const MedusaHeads& heads, const Weights& backbone,
                                const ExpectedTokensText& text,
                                const ExecutionContext& execution = {});

}  // namespace medusa
