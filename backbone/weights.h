// The backbone's parameters as plain tensors, and reading them from a GGUF file or a Hugging Face
// folder.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <vector>

#include "backbone/model_config.h"

namespace medusa {

/// One transformer layer. Symbols as in ARCHITECTURE.md; I = mlp_size.
struct LayerWeights {
  at::Tensor attention_norm;  // [H] float32
  at::Tensor qkv;             // [(A + 2G) D, H]: query rows, then key rows, then value rows
  at::Tensor qkv_bias;        // [(A + 2G) D] float32; undefined where the model has none
  at::Tensor output;          // [H, A D]
  at::Tensor mlp_norm;        // [H] float32
  at::Tensor gate_up;         // [2 I, H]: gate rows, then up rows
  at::Tensor down;            // [H, I]
};

/// All parameters of a model, on one device. Norms are float32, all else in the requested dtype.
/// Rotary layout is Hugging Face's: a head's dimension i turns with i + D/2.
struct Weights {
  ModelConfig config;
  std::string fingerprint;  // of the file(s) they came from
  at::Tensor embedding;     // [V, H]
  std::vector<LayerWeights> layers;
  at::Tensor final_norm;  // [H] float32
  at::Tensor lm_head;     // [V, H]; the same tensor as embedding when tied
};

/// Loads a model. Shows progress.
/// @param model  a .gguf file, or a folder with config.json and .safetensors.
/// @param dtype  at::kFloat or at::kBFloat16.
/// @throws UserError  missing, damaged or foreign file; a tensor missing, left over or of another
///                    shape; an architecture or quantisation we do not run.
Weights load_weights(const std::filesystem::path& model, at::ScalarType dtype, at::Device device);

/// Only the dimensions: cheap, for checks before the load.
ModelConfig read_model_config(const std::filesystem::path& model);

}  // namespace medusa
