// The heads at inference: hidden states in, the best guesses of every head out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backbone/kernels.h"
#include "heads/medusa_heads.h"

namespace medusa {

/// Guesses of all heads for M positions.
struct HeadGuesses {
  int64_t num_heads = 0;         // K
  int64_t top_k = 0;             // guesses kept per head
  std::vector<TokenId> tokens;   // [M, K, top_k], best first; of equal logits the lower id first
  std::vector<float> log_probs;  // [M, K, top_k] under the head's softmax over the V_t it can guess

  int64_t size() const { return static_cast<int64_t>(tokens.size()) / (num_heads * top_k); }  // M
  TokenId token(int64_t position, int64_t head, int64_t rank) const {
    return tokens[index(position, head, rank)];
  }
  float log_prob(int64_t position, int64_t head, int64_t rank) const {
    return log_probs[index(position, head, rank)];
  }

 private:
  size_t index(int64_t position, int64_t head, int64_t rank) const {
    return static_cast<size_t>((position * num_heads + head) * top_k + rank);
  }
};

/// A position's guesses do not depend on the positions beside it (in every dtype in which
/// backbone/linear.h promises so).
///
/// Thread safety: none (scratch buffers).
class HeadGuesser {
 public:
  /// Computes in the backbone's dtype, on its device. Keeps packed copies of what it multiplies
  /// with, and the backbone's embedding; heads and backbone may go afterwards.
  /// @param top_k  1 to V_t.
  /// @throws UserError  top_k is more than the heads' output can guess.
  HeadGuesser(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
              Kernels kernels = Kernels::Auto);
  ~HeadGuesser();

  int64_t num_heads() const;
  int64_t top_k() const;

  /// @param hidden  [H] or [M, H] in the backbone's dtype: state at the token before each root.
  /// @param roots   [M]
  /// @returns       valid until the next call.
  const HeadGuesses& guess(const at::Tensor& hidden, std::span<const TokenId> roots);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace medusa
