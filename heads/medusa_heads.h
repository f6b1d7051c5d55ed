// Medusa decoding heads: K small networks that draft the next K tokens from one hidden state.
// Paper: Medusa (arXiv:2401.10774) §2.1.1. Symbols H, V, K as in ARCHITECTURE.md; V_t: tokens that
// the output can draft (V, or fewer when truncated); r: inner size of a low-rank output.
//
// Head k reads the state h at the token before the root and drafts the token k + 1 places after
// the root. A residual layer is
//   hidden:      y = h + SiLU(W h + b)                           W, b zero at the start
//   root:        y = h + W2 SiLU(W1 [h; e_0] + b1)               W2, b1 zero, W1 small random
//   sequential:  y = h + W2 SiLU(W1 [h; e_0; …; e_k] + b1)       as root
// with e_0 the root token's embedding and e_1 … e_k those of the k tokens between the root and the
// one drafted, scaled to the size of h (embedding_gain). So an untrained head has exactly the LM
// head's logits; the paper's own code leaves b random, whence its heads start slightly beside it.
// Each layer has parameters of its own; the paper's code repeats one block object, so that its
// layers share them. Low-rank outputs cannot equal the LM head: they begin near it
// (head_init.h).
//
// Heads of the kinds `prefix` and `prefix_sequential` are those of `root` and `sequential` behind
// one more layer, which all heads share (prefix_layer.h): what it gives stands for h.
//
// Heads that read no drafts may be corrected by the last one (correction.h): what their outputs
// give is then not yet the logits.
//
// Sequential heads are Hydra's (arXiv:2402.05109). Their first layer adds a learned map of all
// that it reads and their further layers read the state alone; ours keep the `root` layer's form.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backbone/weights.h"
#include "base/token.h"
#include "heads/correction.h"
#include "heads/heads_config.h"
#include "heads/prefix_layer.h"

namespace medusa {

/// One residual layer of one head.
struct HeadBlock {
  at::Tensor weight;  // [H, H] W, or [H, (1 + E) H] W1: columns of h, then of e_0, e_1, …
  at::Tensor bias;    // [H]
  at::Tensor second;  // [H, H] W2; undefined for HeadInput::Hidden
};

/// The parameters of all heads: float32 masters on one device.
struct MedusaHeads {
  HeadsConfig config;
  int64_t hidden_size = 0;           // H
  int64_t vocab_size = 0;            // V
  std::vector<TokenId> kept_tokens;  // [V_t] ascending: token of each output row; empty: all V
  std::vector<HeadBlock> blocks;     // [K * layers_per_head], head-major
  std::vector<at::Tensor> outputs;   // own outputs: K of [V_t, H]; of low rank [V_t, r]; empty when
                                     // shared
  std::vector<at::Tensor> downs;  // K of [r, H], what low-rank outputs multiply first; else empty
  std::optional<PrefixLayer> prefix;          // of inputs that have one
  std::optional<DraftCorrection> correction;  // of config.correction_rank, if that is not 0

  int64_t output_rows() const {
    return kept_tokens.empty() ? vocab_size : static_cast<int64_t>(kept_tokens.size());
  }
  TokenId token_of_row(int64_t row) const {
    return kept_tokens.empty() ? static_cast<TokenId>(row) : kept_tokens[static_cast<size_t>(row)];
  }
};

/// Untrained heads on the backbone's device. The rank of a low-rank output is at most H.
/// @param kept_tokens  different tokens, in any order; empty unless the output is truncated.
/// @param seed         of the random start of W1.
MedusaHeads make_heads(const HeadsConfig& config, const Weights& backbone,
                       std::vector<TokenId> kept_tokens, uint64_t seed);

/// Gives each token's output row; -1: the output cannot draft it. [V]
std::vector<int32_t> rows_of_tokens(const MedusaHeads& heads);

/// Lists all trained tensors under their stable names ("0.layers.0.weight", "0.output",
/// "1.correction", "prefix.qkv"), which files use. The tensors share memory with heads.
std::vector<std::pair<std::string, at::Tensor>> named_parameters(const MedusaHeads& heads);
int64_t num_parameters(const MedusaHeads& heads);

/// The frozen output of shared heads: the LM head, or its kept rows.
/// @returns [V_t, H] in the backbone's dtype.
at::Tensor shared_output(const MedusaHeads& heads, const Weights& backbone);

/// A head's own output, the factors of a low-rank one multiplied out.
/// @returns [V_t, H] float32.
at::Tensor whole_output(const MedusaHeads& heads, int64_t head);

/// The factor that brings token embeddings to the size of hidden states: the ratio of their root
/// mean squares, rounded to a power of two so that it is exact in every dtype. Without it the
/// root's embedding, thirteen times smaller than the state on SmolLM2, is all but invisible to
/// training: head 0 was right on .31 of positions, as often as without the root.
double embedding_gain(const Weights& backbone);

/// Gives what heads read of tokens: their embeddings, scaled by embedding_gain().
/// @param tokens  [n, E] int32 or int64, on the backbone's device.
/// @returns       [n, E, H] in the backbone's dtype.
at::Tensor token_embeddings(const Weights& backbone, double gain, const at::Tensor& tokens);

/// Head k's residual layers, in the dtype of hidden. Autograd flows to the masters.
/// @param hidden      [n, H] backbone states after the final norm, or what the prefix layer made of
///                    them, in any floating dtype.
/// @param embeddings  [n, E, H] token_embeddings() of the root and the tokens after it, the same
///                    dtype, of which the first tokens_read() are read; ignored if that is none.
/// @returns           [n, H], or [n, r] behind a low-rank output's first factor: what the head's
///                    output multiplies.
at::Tensor head_state(const MedusaHeads& heads, int64_t head, const at::Tensor& hidden,
                      const at::Tensor& embeddings);

/// Says whether a head's logits are corrected by the token before: all but head 0's may be.
inline bool is_corrected(const MedusaHeads& heads, int64_t head) {
  return heads.correction.has_value() && head > 0;
}

}  // namespace medusa
