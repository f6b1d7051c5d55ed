#include "backbone/model_config.h"

#include <algorithm>

#include "base/check.h"

namespace medusa {

ModelConfig with_layers(const ModelConfig& config, std::span<const int64_t> layers) {
  ModelConfig out = config;
  out.num_layers = static_cast<int64_t>(layers.size());
  out.no_rope.clear();
  out.windows.clear();
  for (const int64_t layer : layers) {
    MEDUSA_ASSERT(layer >= 0 && layer < config.num_layers, layer, config.num_layers);
    if (!config.no_rope.empty()) out.no_rope.push_back(!config.uses_rope(layer));
    if (!config.windows.empty()) out.windows.push_back(config.window(layer));
  }
  if (std::ranges::count(out.windows, 0) == out.num_layers) out.windows.clear();
  return out;
}

}  // namespace medusa
