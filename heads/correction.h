// The causal correction of heads that draft in parallel: what head k's logits gain from the token
// drafted just before its own,
//   logits_k += U_k · W[token before]         k = 1, 2, …
// Without it a tree crosses each draft of one head with each of the next. DSpark's drafts of a
// block are corrected by two such factors, Domino's (arXiv:2605.29707) by a recurrent network.
//
// All heads share W: what tends to follow a token does not depend on its depth, and a token that is
// rare in the text is seen by every head. Each has its own U, as a deeper head has more to learn
// from the token before. W begins as the tokens' embeddings in the R directions in which they
// differ most (factorize_output()), so that similar tokens correct alike from the first step, and
// U as zero: heads that begin without a correction draft at first what they drafted.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "backbone/weights.h"
#include "base/token.h"

namespace medusa {

/// Float32 masters on one device. Its inner size is R.
struct DraftCorrection {
  at::Tensor table;  // [V_t + 1, R] W by output row; the last row: any token that no row drafts
  std::vector<at::Tensor> factors;  // [K - 1] of [V_t, R], U of heads 1, 2, …

  int32_t unknown_row() const { return static_cast<int32_t>(table.size(0) - 1); }
  const at::Tensor& factor_of(int64_t head) const { return factors[static_cast<size_t>(head - 1)]; }
};

/// A correction before training, on the backbone's device.
/// @param kept_tokens  token of each output row; empty: all of the vocabulary.
/// @param rank         R, at most H.
DraftCorrection make_correction(const Weights& backbone, std::span<const TokenId> kept_tokens,
                                int64_t num_heads, int64_t rank);

/// Gives what a head's U multiplies. Autograd flows to the table.
/// @param rows  [n] output row of the token before; negative: it has none, or is not known.
/// @returns     [n, R] in the dtype asked for.
at::Tensor correction_rows(const DraftCorrection& correction, std::span<const int32_t> rows,
                           at::ScalarType dtype);

}  // namespace medusa
