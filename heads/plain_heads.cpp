#include "heads/plain_heads.h"

#include <ATen/ATen.h>

namespace medusa {

PlainHeads::PlainHeads(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
                       Kernels kernels)
    : config_(heads.config),
      hidden_size_(heads.hidden_size),
      top_k_(top_k),
      token_of_row_(heads.kept_tokens),
      picker_(token_of_row_, top_k) {
  const auto product = [&](const at::Tensor& weight) {
    return Linear(weight.to(backbone.lm_head.scalar_type()).contiguous(), kernels);
  };
  if (config_.input == HeadInput::Root) {
    ends_.embedding = backbone.embedding;
    gain_ = embedding_gain(backbone);
  }
  for (const HeadBlock& block : heads.blocks)
    blocks_.push_back({product(block.weight), block.bias.to(at::kFloat),
                       block.second.defined() ? product(block.second) : Linear()});
  if (heads.outputs.empty()) outputs_.push_back(product(shared_output(heads, backbone)));
  for (const at::Tensor& output : heads.outputs) outputs_.push_back(product(output));
}

/// @returns [M, H], or undefined where heads read none.
at::Tensor PlainHeads::embeddings(std::span<const TokenId> roots) const {
  if (!ends_.embedding.defined()) return {};
  const at::Tensor ids = at::tensor(at::ArrayRef<TokenId>(roots.data(), roots.size()), at::kInt);
  return root_embeddings(ends_, gain_, ids.to(ends_.embedding.device()));
}

/// @param hidden, embeddings  [M, H] compute dtype.
/// @returns                   [M, H] what the head's output multiplies.
at::Tensor PlainHeads::state(int64_t head, const at::Tensor& hidden,
                             const at::Tensor& embeddings) const {
  const at::ScalarType dtype = hidden.scalar_type();
  at::Tensor y = hidden;
  for (int64_t layer = 0; layer < config_.layers_per_head; ++layer) {
    const Block& block = blocks_[static_cast<size_t>(head * config_.layers_per_head + layer)];
    const at::Tensor read = embeddings.defined() ? at::cat({y, embeddings}, 1) : y;
    at::Tensor inner = at::silu(block.first(read) + block.bias);  // [M, H] float32
    if (embeddings.defined()) inner = block.second(inner.to(dtype));
    y = (y + inner).to(dtype);  // float32 sum, rounded once
  }
  return y;
}

/// @param states  [K'] of [M, H].
/// @returns       [M K', V_t] float32 on the CPU, position-major.
at::Tensor PlainHeads::logits(const std::vector<at::Tensor>& states) const {
  at::Tensor out;
  if (is_own(config_.output)) {
    std::vector<at::Tensor> parts;
    for (size_t head = 0; head < states.size(); ++head)
      parts.push_back(outputs_[head](states[head]));
    out = at::stack(parts, 1).flatten(0, 1);
  } else {
    out = outputs_[0](at::stack(states, 1).flatten(0, 1));
  }
  return out.to(at::kCPU).contiguous();
}

void PlainHeads::guess(const at::Tensor& hidden, std::span<const TokenId> roots, int64_t num_heads,
                       HeadGuesses& guesses) {
  const auto num_positions = static_cast<int64_t>(roots.size());
  const at::Tensor rows = hidden.reshape({num_positions, hidden_size_});
  const at::Tensor embedded = embeddings(roots);
  std::vector<at::Tensor> states;
  for (int64_t head = 0; head < num_heads; ++head) states.push_back(state(head, rows, embedded));
  const at::Tensor all = logits(states);
  guesses.reshape(num_positions, num_heads, top_k_);
  const auto row_size = static_cast<size_t>(all.size(1));
  const float* values = all.const_data_ptr<float>();
  for (int64_t row = 0; row < all.size(0); ++row, values += row_size)
    picker_.pick({values, row_size}, row, guesses);
}

}  // namespace medusa
