#include "heads/fused_weights.h"

#include <ATen/ATen.h>

namespace medusa {
namespace {

FusedBlock pack_block(const HeadBlock& block, int64_t hidden_size) {
  FusedBlock packed;
  packed.state = TileWeight(block.weight.narrow(1, 0, hidden_size));
  packed.bias = block.bias.to(at::kFloat).contiguous();
  for (int64_t at = hidden_size; at < block.weight.size(1); at += hidden_size)
    packed.tokens.emplace_back(block.weight.narrow(1, at, hidden_size));
  if (block.second.defined()) packed.second = TileWeight(block.second);
  return packed;
}

}  // namespace

FusedWeights::FusedWeights(const MedusaHeads& heads, const Weights& backbone)
    : config(heads.config), hidden_size(heads.hidden_size), kept_tokens(heads.kept_tokens) {
  for (const HeadBlock& block : heads.blocks) blocks.push_back(pack_block(block, hidden_size));
  for (const at::Tensor& output : heads.outputs) outputs.emplace_back(output);
  if (outputs.empty()) outputs.emplace_back(shared_output(heads, backbone));
  if (reads_tokens()) {
    embedding = backbone.embedding.contiguous();
    gain = static_cast<float>(embedding_gain(backbone));
  }
}

}  // namespace medusa
