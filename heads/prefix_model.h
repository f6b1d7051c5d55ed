// The prefix layer at inference: states in, states for the heads out, along one text or many.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "backbone/linear.h"
#include "backbone/llama.h"
#include "heads/prefix_layer.h"
#include "heads/text_cache.h"

namespace medusa {

/// The layer's weights, for all texts: a backbone of one layer that is given states where others
/// embed tokens, so it runs on the backbone's kernels.
///
/// Thread safety: none (scratch buffers).
class PrefixModel {
 public:
  /// Computes in the backbone's dtype, on its device; where the backbone is quantized,
  /// those of the layer are in blocks of 8 bits. Keeps the backbone's embedding (not a copy).
  PrefixModel(const PrefixLayer& prefix, const Weights& backbone,
              const ExecutionContext& execution = {});

  const char* kernels() const { return llama_.kernels(); }  // which code computes, for people

 private:
  friend class PrefixText;
  at::Tensor residual(const at::Tensor& hidden, std::span<const TokenId> roots) const;

  Llama llama_;
  PrefixLayer ends_;  // what stands around the layer: its scale and norm, no matrices
  Linear token_;
  double gain_;  // embedding_gain() of the backbone
};

/// One text, or several at the same time, each with a cache of its own.
///
/// A position's result does not depend on how many are run together (in every dtype in which
/// backbone/llama.h promises so; else within rounding).
class PrefixText {
 public:
  /// @param model  kept by reference; must outlive this.
  explicit PrefixText(PrefixModel& model);

  /// Runs the text's next positions, which stay.
  /// @param hidden  [n, H] backbone states at the tokens before the roots, in any floating dtype.
  /// @param roots   [n] with n of at least 1.
  /// @returns       [n, H] in the backbone's dtype: what heads read at these positions.
  at::Tensor extend(const at::Tensor& hidden, std::span<const TokenId> roots);

  /// Runs over positions that do not stay, as extend() does over those that do.
  at::Tensor peek(const at::Tensor& hidden, std::span<const TokenId> roots);

  int64_t length() const { return cache_.length(); }  // positions that stayed

 private:
  PrefixModel& model_;
  TextCache cache_;
};

}  // namespace medusa
