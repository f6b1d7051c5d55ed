// A model's two ends without its layers: quick to load, and small.
#pragma once

#include <filesystem>

#include "backbone/weights.h"

namespace medusa {

/// Embedding, final norm and LM head; no layers. For what compares heads with a model or copies its
/// LM head.
/// @throws UserError  as load_weights(), but layers and leftovers are not looked at.
Weights load_weights_without_layers(const std::filesystem::path& model, at::ScalarType dtype,
                                    at::Device device);

}  // namespace medusa
