// Small random models of sizes that the device's kernels take.
#pragma once

#include "tests/backbone/tiny_model.h"

namespace medusa {

inline ModelConfig device_config(int64_t num_heads = 4, int64_t num_kv_heads = 2) {
  ModelConfig config = tiny_config();
  config.num_heads = num_heads;
  config.num_kv_heads = num_kv_heads;
  config.head_size = 64;
  return config;
}

inline Weights to_device(Weights weights, at::Device device) {
  for (at::Tensor* each : {&weights.embedding, &weights.final_norm, &weights.lm_head})
    *each = each->to(device);
  for (LayerWeights& layer : weights.layers)
    for (const LayerPart& part : kLayerParts)
      if ((layer.*part.tensor).defined()) layer.*part.tensor = (layer.*part.tensor).to(device);
  return weights;
}

inline Weights device_weights(uint64_t seed, const ModelConfig& config, at::Device device) {
  return to_device(tiny_weights(seed, config, at::kBFloat16), device);
}

}  // namespace medusa
