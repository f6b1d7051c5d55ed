// Heads as other projects publish them, made from ours.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backbone/files/safetensors.h"
#include "base/file.h"
#include "base/formats/torch_file.h"
#include "heads/foreign/head_names.h"
#include "tests/heads/random_heads.h"

namespace medusa {

using NamedTensors = std::map<std::string, at::Tensor>;

/// The tensors of heads that read the state alone, under a layout's names, in a dtype.
inline NamedTensors published_tensors(HeadLayout layout, const MedusaHeads& heads,
                                      at::ScalarType dtype) {
  NamedTensors out;
  const int64_t layers = heads.config.layers_per_head;
  for (int64_t head = 0; head < heads.config.num_heads; ++head) {
    for (int64_t layer = 0; layer < layers; ++layer) {
      const HeadBlock& block = heads.blocks[static_cast<size_t>(head * layers + layer)];
      out[head_tensor_name(layout, {HeadTensorKind::Weight, head, layer})] = block.weight.to(dtype);
      out[head_tensor_name(layout, {HeadTensorKind::Bias, head, layer})] = block.bias.to(dtype);
    }
    if (!heads.outputs.empty())
      out[head_tensor_name(layout, {HeadTensorKind::Output, head, layers})] =
          heads.outputs[static_cast<size_t>(head)].to(dtype);
  }
  return out;
}

inline void write_config(const std::filesystem::path& folder, const nlohmann::json& config) {
  write_file(folder / "config.json", config.dump());
}

/// The same dict as torch.save would write it.
inline void write_torch_tensors(const std::filesystem::path& path, const NamedTensors& tensors) {
  const std::filesystem::path reference = path.string() + ".safetensors";
  write_tensors(reference, tensors, {});
  const SafetensorsFile file(reference);
  write_torch_file(path, file.entries());
  std::filesystem::remove(reference);
}

}  // namespace medusa
