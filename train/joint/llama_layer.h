// One transformer layer over whole packed texts, with autograd: the arithmetic that every trained
// Llama shares. The same as backbone/llama.h's, without its cache.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backbone/rope.h"
#include "backbone/weights.h"
#include "base/token.h"

namespace medusa {

/// Texts one after the other; each sees itself only, from position 0.
struct PackedTexts {
  at::Tensor ids;                // [n] int64
  at::Tensor positions;          // [n] int64
  std::vector<int64_t> lengths;  // of each text, together n

  int64_t size() const { return ids.size(0); }  // n
};

/// @param lengths  of each text, together tokens.size(); none longer than the context.
PackedTexts pack_texts(std::span<const TokenId> tokens, std::span<const int64_t> lengths,
                       int64_t context, at::Device device);

/// The four products of a layer.
enum class LayerMatrix { Qkv, Output, GateUp, Down };

/// x [n, in] float32 or dtype -> x · matrixᵀ [n, out] in the dtype that is computed in.
using LayerProduct = std::function<at::Tensor(const at::Tensor& x, LayerMatrix matrix)>;

/// x times a matrix, in the dtype that is computed in.
at::Tensor plain_product(const at::Tensor& x, const at::Tensor& matrix, at::ScalarType dtype);

const at::Tensor& matrix_of(const LayerWeights& layer, LayerMatrix matrix);
at::Tensor& matrix_of(LayerWeights& layer, LayerMatrix matrix);

/// @param index  of the layer in the model that config describes.
/// @param layer  norms and bias are read from it; the matrices are product's.
/// @param dtype  of products and attention.
/// @param x      [n, H] float32, the residual stream.
/// @returns      [n, H] float32, behind the layer.
at::Tensor run_layer(const ModelConfig& config, int64_t index, const RopeTable& rope,
                     const LayerWeights& layer, const LayerProduct& product,
                     const PackedTexts& texts, at::ScalarType dtype, const at::Tensor& x);

}  // namespace medusa
