#include "heads/cpu/packed_heads.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace medusa {
namespace {

TileWeight pack(const at::Tensor& weight, QuantKind kind) {
  return kind == QuantKind::None ? TileWeight(weight) : TileWeight(quantize_matrix(weight));
}

PackedHeadBlock pack_block(const HeadBlock& block, int64_t hidden_size, QuantKind kind) {
  PackedHeadBlock packed;
  packed.state = pack(block.weight.narrow(1, 0, hidden_size), kind);
  packed.bias = block.bias.to(at::kFloat).contiguous();
  for (int64_t at = hidden_size; at < block.weight.size(1); at += hidden_size)
    packed.tokens.push_back(pack(block.weight.narrow(1, at, hidden_size), kind));
  if (block.second.defined()) packed.second = pack(block.second, kind);
  return packed;
}

}  // namespace

PackedHeads::PackedHeads(const MedusaHeads& heads, const Weights& backbone)
    : config(heads.config), hidden_size(heads.hidden_size), kept_tokens(heads.kept_tokens) {
  for (const HeadBlock& block : heads.blocks)
    blocks.push_back(pack_block(block, hidden_size, backbone.kind));
  for (const at::Tensor& output : heads.outputs) outputs.push_back(pack(output, backbone.kind));
  for (const at::Tensor& down : heads.downs) downs.push_back(pack(down, backbone.kind));
  if (outputs.empty()) outputs.push_back(pack(shared_output(heads, backbone), backbone.kind));
  if (heads.correction) {
    for (const at::Tensor& factor : heads.correction->factors)
      corrections.push_back(pack(factor, backbone.kind));
    correction_table = heads.correction->table.to(at::kBFloat16).contiguous();
    row_of_token = rows_of_tokens(heads);
    std::replace(row_of_token.begin(), row_of_token.end(), -1, heads.correction->unknown_row());
  }
  if (reads_tokens()) {
    embedding = backbone.embedding.contiguous();
    gain = static_cast<float>(embedding_gain(backbone));
  }
}

}  // namespace medusa
