// The heads in LibTorch's ops, for any dtype and device: the slow twin of fused_heads.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "backbone/linear.h"
#include "heads/head_guesses.h"
#include "heads/head_query.h"
#include "heads/medusa_heads.h"

namespace medusa {

/// Products give float32 (backbone/linear.h), and beside a backbone in blocks their weights are in
/// blocks, as FusedWeights'. In bfloat16 numbers are rounded in four places:
/// scaled embeddings (exactly: the gain is a power of two), what a layer's second product
/// multiplies, the state after each layer, once, and what a low-rank output's first factor gives.
///
/// Thread safety: none (scratch buffers).
class PlainHeads {
 public:
  /// @param execution  of the products.
  PlainHeads(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
             const ExecutionContext& execution);
  PlainHeads(const PlainHeads&) = delete;
  PlainHeads& operator=(const PlainHeads&) = delete;

  /// As HeadGuesser::guess(). The states may come from another device, in another dtype.
  void guess(const HeadQuery& query, HeadGuesses& guesses);

  const char* kernels() const { return outputs_.front().kernels(); }  // that multiply

 private:
  /// One residual layer of one head.
  struct Block {
    Linear first;     // [H, (1 + E) H]
    at::Tensor bias;  // [H] float32
    Linear second;    // [H, H]; unused where no tokens are read
  };

  at::Tensor embeddings(const HeadQuery& query) const;
  at::Tensor state(int64_t head, const at::Tensor& hidden, const at::Tensor& embeddings) const;
  at::Tensor logits(const std::vector<at::Tensor>& states, int64_t first_head) const;
  void pick(const at::Tensor& logits, HeadGuesses& guesses);

  HeadsConfig config_;
  at::TensorOptions rows_;  // dtype and device of what the heads read
  int64_t hidden_size_ = 0, top_k_ = 0;
  std::vector<TokenId> token_of_row_;  // [V_t]; empty: a row is its token
  Weights ends_;                       // only the embedding [V, H]; none for HeadInput::Hidden
  double gain_ = 1;                    // embedding_gain() of the backbone
  std::vector<Block> blocks_;          // [K * layers_per_head], head-major
  std::vector<Linear> outputs_;        // one of [V_t, H] if shared, else K; of low rank [V_t, r]
  std::vector<Linear> downs_;          // K of [r, H] of low-rank outputs, else none
  GuessPicker picker_;
};

}  // namespace medusa
