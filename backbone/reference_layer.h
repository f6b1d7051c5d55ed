// The arithmetic of one transformer layer in LibTorch's ops: of the reference, and with autograd of
// whatever is trained.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "backbone/rope.h"
#include "backbone/stage_timer.h"
#include "backbone/weights.h"

namespace medusa {

/// RMSNorm (Zhang and Sennrich, arXiv:1910.07467): x / rms(x) · weight, without mean or bias.
/// @param x       [N, H] float32.
/// @param weight  [H] float32.
/// @returns       [N, H] float32.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);

/// The four weights of a layer that rows are multiplied with.
enum class LayerMatrix { Qkv, Output, GateUp, Down };

const at::Tensor& matrix_of(const LayerWeights& layer, LayerMatrix matrix);
at::Tensor& matrix_of(LayerWeights& layer, LayerMatrix matrix);

/// x [n, in] · matrixᵀ -> [n, out]. It takes x in float32 or the dtype that it gives back.
using LayerMatmul = std::function<at::Tensor(const at::Tensor& x, LayerMatrix matrix)>;

/// Attention of the layer's rows: query [n, A, D], key and value [n, G, D], float32, with rotary
/// embedding -> [n, A D], in any dtype that the layer's GEMMs take.
using LayerAttention = std::function<at::Tensor(const at::Tensor& query, const at::Tensor& key,
                                                const at::Tensor& value)>;

/// What a layer is besides its GEMMs and its attention.
struct LayerPass {
  const ModelConfig& config;
  int64_t index;  // of the layer in the model
  const RopeTable& rope;
  const at::Tensor& positions;  // [n] int64
  const LayerMatmul& matmul;
  StageTimer* timer = nullptr;  // told of each stage; attention tells of CacheWrite
};

/// @param layer  norms and bias are read from it; its matrices are the GEMM's.
/// @param x      [n, H] float32, the residual stream.
/// @returns      [n, H] float32, behind the layer.
at::Tensor run_layer(const LayerPass& pass, const LayerWeights& layer,
                     const LayerAttention& attention, const at::Tensor& x);

/// The layer behind its first norm, for layers whose attention reads more than the residual stream
/// (EAGLE-3).
/// @param input  [n, in] float32, normalized: what the query, key and value matrix multiplies.
/// @param x      [n, H] float32, the residual stream.
at::Tensor run_normed_layer(const LayerPass& pass, const LayerWeights& layer,
                            const LayerAttention& attention, const at::Tensor& input,
                            const at::Tensor& x);

/// The part behind attention: the output projection and the feed-forward network.
/// @param attention_out  [n, A D] what attention gave.
/// @param x              [n, H] float32, the residual stream before the layer.
at::Tensor run_layer_tail(const ModelConfig& config, const LayerMatmul& matmul,
                          const LayerWeights& layer, const at::Tensor& attention_out,
                          const at::Tensor& x, StageTimer* timer = nullptr);

}  // namespace medusa
