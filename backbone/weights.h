// The backbone's parameters as plain tensors, and reading them from a GGUF file or a Hugging Face
// folder.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <vector>

#include "backbone/model_config.h"
#include "backbone/quantized_matrix.h"
#include "base/progress.h"

namespace medusa {

/// Whether the weights of GEMMs are kept in blocks of small integers (quantized_matrix.h).
enum class QuantKind {
  None,    // plain numbers
  Int8,    // 8 bits, quantized when loaded
  Stored,  // as a GGUF file has them; what it keeps in plain numbers is quantized to 8 bits
};

/// One layer's quantized weights, outputs as in LayerWeights.
struct LayerQuantized {
  QuantizedMatrix qkv{}, output{}, gate_up{}, down{};
};

/// One transformer layer. Symbols as in ARCHITECTURE.md; I = mlp_size.
struct LayerWeights {
  at::Tensor attention_norm;  // [H] float32
  at::Tensor qkv;             // [(A + 2G) D, H]: query rows, then key rows, then value rows
  at::Tensor qkv_bias;        // [(A + 2G) D] float32; undefined where the model has none
  at::Tensor query_norm;      // [D] float32, over each head; undefined where the model has none
  at::Tensor key_norm;        // [D] float32, likewise
  at::Tensor output;          // [H, A D]
  at::Tensor mlp_norm;        // [H] float32
  at::Tensor gate_up;         // [2 I, H]: gate rows, then up rows
  at::Tensor down;            // [H, I]
  LayerQuantized blocks{};    // instead of these four, where weights are quantized
};

/// A tensor of LayerWeights and its name, for what treats all of them alike. Matrices have two
/// dimensions, norms and biases one.
struct LayerPart {
  const char* name;
  at::Tensor LayerWeights::*tensor;
};
inline constexpr LayerPart kLayerParts[] = {
    {"attention_norm", &LayerWeights::attention_norm},
    {"qkv", &LayerWeights::qkv},
    {"qkv_bias", &LayerWeights::qkv_bias},
    {"query_norm", &LayerWeights::query_norm},
    {"key_norm", &LayerWeights::key_norm},
    {"output", &LayerWeights::output},
    {"mlp_norm", &LayerWeights::mlp_norm},
    {"gate_up", &LayerWeights::gate_up},
    {"down", &LayerWeights::down},
};

/// All parameters of a model, on one device. Norms are float32, all else in the requested dtype.
/// Rotary layout: a head's dimension i is rotated with i + D/2 (files/rope_permutation.h).
struct Weights {
  ModelConfig config;
  std::string fingerprint;  // of the file(s) they came from
  at::Tensor embedding;     // [V, H]
  std::vector<LayerWeights> layers;
  at::Tensor final_norm;  // [H] float32
  at::Tensor lm_head;     // [V, H]; the same tensor as embedding when tied

  QuantKind kind = QuantKind::None;
  QuantizedMatrix lm_head_quantized;  // where weights are quantized, besides lm_head
};

/// Loads a model.
/// @param model  a .gguf file, or a folder with config.json and .safetensors.
/// @param dtype  at::kFloat or at::kBFloat16.
/// @param kind   blocks: these stay on the CPU, from where who multiplies with them takes them;
///               dtype is then that of the embedding, of lm_head and of the states and cache of who
///               computes with them.
/// @throws UserError  missing, damaged or foreign file; a tensor missing, left over or of another
///                    shape; an architecture or quantization we do not run.
Weights load_weights(const std::filesystem::path& model, at::ScalarType dtype, at::Device device,
                     QuantKind kind = QuantKind::None, ProgressFunction progress = {});

/// Whether all large matrices of this model are stored in blocks: QuantKind::Stored changes
/// nothing.
bool stores_quantized(const std::filesystem::path& model);

/// Only the dimensions: cheap, for checks before the load.
ModelConfig read_model_config(const std::filesystem::path& model);

}  // namespace medusa
