// An EAGLE-3 draft (Li et al., arXiv:2503.01840): one transformer layer that continues a text from
// the target's features, the residual stream before three of its layers.
//
// Position i of a text pairs the features f_i of its token i with the embedding e of token i + 1:
//   h_i = fc f_i
//   y_i = h_i + attention over [norm(e_0), norm(h_0)] … [norm(e_i), norm(h_i)], then + SwiGLU
// and lm_head norm(y_i) predicts token i + 2 among the V_d tokens of a vocabulary of its own. Where
// the draft runs ahead there are no features: y stands for h at the next position.
//
// Facts: the published code, SafeAILab/EAGLE eagle/model/cnets.py, and the readers of the same
// checkpoints in vLLM and SGLang (llama_eagle3.py).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "backbone/weights.h"
#include "base/token.h"

namespace medusa {

struct Eagle3Weights {
  ModelConfig config;  // of a model of this one layer. V: the target's; its context
                       // is not a limit of the draft
  std::vector<int32_t> feature_layers;  // [F] of the target, ascending: before which
  at::Tensor fuse;                      // [H, F H_t] fc, H_t the target's hidden size
  at::Tensor token_norm;                // [H] float32, of embeddings
  at::Tensor state_norm;                // [H] float32, of h
  LayerWeights layer;                   // its qkv is [(A + 2G) D, 2 H]; no attention_norm
  at::Tensor final_norm;                // [H] float32
  at::Tensor lm_head;                   // [V_d, H]
  std::vector<TokenId> tokens;          // [V_d] the target's token of each row of lm_head
  at::Tensor embedding;                 // [V, H]; undefined: the target's, and H is H_t
};

/// The layers that EAGLE reads where a draft does not say: low, middle and high.
/// @returns  empty for a target of fewer than 7 layers, where these are not three.
std::vector<int32_t> usual_feature_layers(int64_t num_layers);

}  // namespace medusa
