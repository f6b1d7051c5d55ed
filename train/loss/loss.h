// Cross-entropy of one head over a batch, and its gradient, in chunks of positions: a [K, n, V]
// tensor never exists. Paper: Medusa (arXiv:2401.10774) §2.2.1, L = sum over k of lambda_k CE_k.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "heads/heads_checkpoint.h"
#include "train/samples/batch.h"

namespace medusa {

/// Sums over positions, so that chunks and batches add up.
struct HeadLoss {
  double loss = 0;                           // nats, over num_labels positions
  int64_t num_labels = 0;                    // positions that have a loss
  int64_t num_scored = 0;                    // positions whose token is known
  int64_t top_1 = 0, top_5 = 0, top_10 = 0;  // positions with that token among the first drafts

  void add(const HeadLoss& other);
  HeadQuality quality() const;  // means; zeros if there was no position

  static constexpr size_t kNumbers = 6;
  /// All of it, the loss first; counts below 2^53 are exact.
  std::array<double, kNumbers> numbers() const;
  static HeadLoss of_numbers(const double* numbers);
};

/// @returns  [K]
std::vector<HeadQuality> qualities(const std::vector<HeadLoss>& heads);

/// What a head's output is and where its gradients go. States of a corrected head have R columns
/// more, which its U multiplies (heads/correction.h).
struct HeadOutputWeight {
  at::Tensor weight;                 // [V_t, H] compute dtype
  at::Tensor gradient;               // [V_t, H] float32, added to; undefined: frozen
  at::Tensor correction{};           // [V_t, R] compute dtype; undefined: none
  at::Tensor correction_gradient{};  // [V_t, R] float32, added to; undefined: frozen
};

/// @returns  [n, V_t] in the dtype of the states.
at::Tensor output_logits(const at::Tensor& states, const HeadOutputWeight& output);

/// @param states    [n, H] of head_state, or [n, H + R], compute dtype, detached.
/// @param labels    of n positions; at most kMaxTargets soft ones for each.
/// @param scale     what one position's cross-entropy weighs in the loss; 0: measure only.
/// @param chunk     positions whose logits exist at one time.
/// @param gradient  like states; overwritten with scale * d loss / d states unless scale is
///                  0, when it may be undefined.
HeadLoss head_loss(const at::Tensor& states, const HeadOutputWeight& output, const Labels& labels,
                   double scale, int64_t chunk, at::Tensor gradient);

/// Backpropagates d loss / d logits through output_logits().
/// @param logit_gradient  [n, V_t] in the weight's dtype.
/// @param gradient        like states; overwritten.
void through_output(const at::Tensor& logit_gradient, const at::Tensor& states,
                    const HeadOutputWeight& output, at::Tensor gradient);

/// The reference: LibTorch's ops on whole logits, any dtype and device. Same arguments and results.
HeadLoss reference_head_loss(const at::Tensor& states, const HeadOutputWeight& output,
                             const Labels& labels, double scale, at::Tensor gradient);

}  // namespace medusa
