// One transformer layer over whole packed texts, with autograd: the reference layer without a
// cache.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "backbone/reference_layer.h"
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

/// x times a matrix, in the dtype that is computed in.
at::Tensor reference_matmul(const at::Tensor& x, const at::Tensor& matrix, at::ScalarType dtype);

/// @param index   of the layer in the model that config describes.
/// @param layer   norms and bias are read from it; the matrices are matmul's.
/// @param matmul  gives its results in dtype.
/// @param dtype   of GEMMs and attention.
/// @param x       [n, H] float32, the residual stream.
/// @returns       [n, H] float32, behind the layer.
at::Tensor run_packed_layer(const ModelConfig& config, int64_t index, const RopeTable& rope,
                            const LayerWeights& layer, const LayerMatmul& matmul,
                            const PackedTexts& texts, at::ScalarType dtype, const at::Tensor& x);

}  // namespace medusa
