// The prefix layer: one more transformer layer between the backbone's states and the heads, over
// the answer so far. Hydra++ (arXiv:2402.05109 §4.2) has one over the states; here each state is
// joined by the next token's embedding, as in EAGLE (arXiv:2401.15077).
//
// Position i of an answer has the state h_i at the token before its root and the root's embedding
// e_i, scaled as heads read it (embedding_gain):
//   x_i = h_i + P e_i
//   y_i = x_i + attention over positions 0 … i of the answer, then + SwiGLU
// and y_i stands for h_i in all heads. P and the last matrix of either part begin at zero, so that
// an untrained layer changes nothing. Prompts have no positions: a dataset holds the states of
// answers only, and so does the layer's cache when text is decoded.
//
// A layer may also begin as the backbone's last layer, which knows already how to make a state out
// of what came before. The backbone's layer reads and adds to a residual stream r, of which the
// states are h = w * r / RMS(r), with w the final norm. So the norms are converted, what is added
// is scaled by s, and heads read the sum as a final norm leaves it:
//   y_i = x_i + s * attention, then + s * SwiGLU
//   z_i = y_i / RMS(y_i / w)     stands for h_i
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "backbone/weights.h"
#include "base/random.h"

namespace medusa {

/// Parameters: float32 masters. The layer's heads, widths and rotary embedding are those of the
/// backbone's layers; it has neither biases nor norms of heads nor a window.
struct PrefixLayer {
  ModelConfig config;  // of a model of this one layer
  at::Tensor token;    // [H, H] P
  LayerWeights layer;
  /// [H] float32, what the sums of either part are multiplied with before they are added. It is
  /// not trained: weights that begin as the backbone's keep their size, and so what one optimizer
  /// step changes of them. Undefined: 1.
  at::Tensor scale{};
  at::Tensor final_norm{};  // [H] float32 w of the backbone; defined where scale is
};

/// A trained tensor of the layer.
struct PrefixPart {
  std::string name;  // "token", "qkv"
  at::Tensor* tensor = nullptr;
  std::vector<int64_t> sizes;  // that it has, or will have
};
std::vector<PrefixPart> prefix_parts(PrefixLayer& prefix);

/// The layer's sizes; its tensors are undefined.
/// @param backbone  whose states it reads.
PrefixLayer empty_prefix_layer(const ModelConfig& backbone);

/// An untrained layer.
PrefixLayer make_prefix_layer(const ModelConfig& backbone, const Random& random, at::Device device);

/// Makes an untrained layer begin as the backbone's last one, but for P, which stays zero.
/// @param last        of the backbone that the layer was made for, any floating dtype.
/// @param final_norm  [H] w.
/// @throws UserError  the backbone's layer has parts that a prefix layer has not.
void begin_as_last_layer(PrefixLayer& prefix, const ModelConfig& backbone, const LayerWeights& last,
                         const at::Tensor& final_norm);

/// Gives what heads read of a layer's sum: itself, or where the layer has a scale w * r / RMS(r),
/// the final norm of the residual stream that the sum stands for.
/// @param sum  [n, H] float32.
at::Tensor normed_sum(const PrefixLayer& prefix, const at::Tensor& sum);

/// Gives a layer's last matrix of either part, `output` or `down`, with the scale multiplied in.
at::Tensor scaled_matrix(const PrefixLayer& prefix, const at::Tensor& matrix);

/// Lists all trained tensors under their names.
std::vector<std::pair<std::string, at::Tensor>> named_parameters(const PrefixLayer& prefix);

}  // namespace medusa
