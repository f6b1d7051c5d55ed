// A model's weights read part by part, so that whoever packs them holds one layer at a time, or
// without layers: quick to load, and small.
#pragma once

#include <filesystem>
#include <memory>

#include "backbone/weights.h"

namespace medusa {

/// Tells its progress from the first part to the last.
///
/// Thread safety: none. Inside, all threads of LibTorch's pool convert numbers.
class WeightsReader {
 public:
  /// Opens and maps the files. Parameters and errors as load_weights().
  WeightsReader(const std::filesystem::path& model, at::ScalarType dtype, at::Device device,
                QuantKind kind = QuantKind::None, ProgressFunction progress = {});
  ~WeightsReader();
  WeightsReader(const WeightsReader&) = delete;
  WeightsReader& operator=(const WeightsReader&) = delete;

  /// What the model is, from its header: no tensor is read. Valid as long as this.
  const ModelConfig& config() const;

  /// All but the layers. Called once, first.
  Weights non_layer();

  /// The next layer, from 0. Called as often as there are layers; the last call also looks for
  /// tensors that no part of the model uses.
  LayerWeights next_layer();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Embedding, final norm and LM head; no layers. For what compares heads with a model or copies its
/// LM head.
/// @throws UserError  as load_weights(), but layers and leftovers are not looked at.
Weights load_weights_without_layers(const std::filesystem::path& model, at::ScalarType dtype,
                                    at::Device device, ProgressFunction progress = {});

/// The last layer alone, float32. For heads that begin as it.
/// @throws UserError  as load_weights(), of this layer's tensors.
LayerWeights load_last_layer(const std::filesystem::path& model, at::Device device);

}  // namespace medusa
