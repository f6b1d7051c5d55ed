#include "heads/head_guesser.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backbone/linear.h"
#include "base/check.h"
#include "base/error.h"
#include "heads/best_guesses.h"

namespace medusa {
namespace {

/// One residual layer of all heads. The products of heads that read the same rows are one product.
struct GuessLayer {
  std::vector<Linear> first;  // one of [K H, in] if all heads read the same rows, else K of [H, in]
  at::Tensor bias;            // [K, H] float32
  std::vector<Linear> second;  // root: K of [H, H]
};

}  // namespace

struct HeadGuesser::State {
  HeadsConfig config;
  int64_t hidden_size = 0, top_k = 0;
  std::vector<TokenId> token_of_row;  // [V_t]; empty: a row is its token
  Weights ends;                       // only the embedding [V, H]; undefined for HeadInput::Hidden
  double gain = 1;                    // embedding_gain() of the backbone
  std::vector<GuessLayer> layers;
  std::vector<Linear> outputs;  // one of [V_t, H] if shared, else K
  std::vector<ScoredRow> best;  // [top_k] scratch
  HeadGuesses guesses;

  at::Tensor states(const at::Tensor& hidden, std::span<const TokenId> roots);
  at::Tensor layer_states(const GuessLayer& layer, const at::Tensor& states,
                          const at::Tensor& embeddings) const;
  at::Tensor logits(const at::Tensor& states) const;
  void pick(const at::Tensor& logits, int64_t num_positions);
};

namespace {

GuessLayer pack_layer(const MedusaHeads& heads, int64_t layer, at::ScalarType dtype,
                      Kernels kernels) {
  GuessLayer packed;
  std::vector<at::Tensor> weights, biases;
  for (int64_t head = 0; head < heads.config.num_heads; ++head) {
    const HeadBlock& block =
        heads.blocks[static_cast<size_t>(head * heads.config.layers_per_head + layer)];
    weights.push_back(block.weight.to(dtype));
    biases.push_back(block.bias.to(at::kFloat));
    if (block.second.defined())
      packed.second.emplace_back(block.second.to(dtype).contiguous(), kernels);
  }
  packed.bias = at::stack(biases);
  if (layer == 0) weights = {at::cat(weights)};
  for (const at::Tensor& weight : weights) packed.first.emplace_back(weight.contiguous(), kernels);
  return packed;
}

}  // namespace

HeadGuesser::HeadGuesser(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
                         Kernels kernels)
    : state_(std::make_unique<State>()) {
  const c10::InferenceMode no_grad;
  if (top_k < 1 || top_k > heads.output_rows())
    throw UserError(fmt::format(
        "heads: top_k is {}, expected 1 to {}, the tokens that the heads can guess; lower it",
        top_k, heads.output_rows()));
  const at::ScalarType dtype = backbone.lm_head.scalar_type();
  State& s = *state_;
  s.config = heads.config;
  s.hidden_size = heads.hidden_size;
  s.top_k = top_k;
  s.token_of_row = heads.kept_tokens;
  if (heads.config.input == HeadInput::Root) {
    s.ends.embedding = backbone.embedding;
    s.gain = embedding_gain(backbone);
  }
  for (int64_t layer = 0; layer < heads.config.layers_per_head; ++layer)
    s.layers.push_back(pack_layer(heads, layer, dtype, kernels));
  if (heads.outputs.empty()) s.outputs.emplace_back(shared_output(heads, backbone), kernels);
  for (const at::Tensor& output : heads.outputs)
    s.outputs.emplace_back(output.to(dtype).contiguous(), kernels);
  s.best.resize(static_cast<size_t>(top_k));
  s.guesses.num_heads = heads.config.num_heads;
  s.guesses.top_k = top_k;
}

HeadGuesser::~HeadGuesser() = default;
int64_t HeadGuesser::num_heads() const { return state_->config.num_heads; }
int64_t HeadGuesser::top_k() const { return state_->top_k; }

/// @param states      [M, H] before the first layer, [M, K, H] later; compute dtype.
/// @param embeddings  [M, H], or undefined.
/// @returns           [M, K, H] compute dtype.
at::Tensor HeadGuesser::State::layer_states(const GuessLayer& layer, const at::Tensor& states,
                                            const at::Tensor& embeddings) const {
  const int64_t m = states.size(0), k = config.num_heads;
  const bool same_rows = states.dim() == 2;
  const auto rows_of = [&](int64_t head) { return same_rows ? states : states.select(1, head); };
  const auto with_root = [&](const at::Tensor& rows) {
    return embeddings.defined() ? at::cat({rows, embeddings}, 1) : rows.contiguous();
  };
  at::Tensor inner;  // [M, K, H] float32
  if (same_rows) {
    inner = layer.first[0](with_root(states)).view({m, k, hidden_size});
  } else {
    std::vector<at::Tensor> parts;
    for (int64_t head = 0; head < k; ++head)
      parts.push_back(layer.first[static_cast<size_t>(head)](with_root(rows_of(head))));
    inner = at::stack(parts, 1);
  }
  inner = at::silu(inner + layer.bias);
  if (!layer.second.empty()) {
    const at::Tensor rounded = inner.to(states.scalar_type());
    std::vector<at::Tensor> parts;
    for (int64_t head = 0; head < k; ++head)
      parts.push_back(
          layer.second[static_cast<size_t>(head)](rounded.select(1, head).contiguous()));
    inner = at::stack(parts, 1);
  }
  const at::Tensor before = same_rows ? states.unsqueeze(1) : states;
  return (before + inner).to(states.scalar_type());  // float32 sum, rounded once
}

/// @returns [M, K, H] what the outputs multiply.
at::Tensor HeadGuesser::State::states(const at::Tensor& hidden, std::span<const TokenId> roots) {
  at::Tensor embeddings;
  if (ends.embedding.defined()) {
    const at::Tensor ids = at::tensor(at::ArrayRef<TokenId>(roots.data(), roots.size()), at::kInt);
    embeddings = root_embeddings(ends, gain, ids.to(ends.embedding.device()));  // [M, H]
  }
  at::Tensor states = hidden;  // [M, H]
  for (const GuessLayer& layer : layers) states = layer_states(layer, states, embeddings);
  return states;
}

/// @returns [M * K, V_t] float32 on the CPU, position-major.
at::Tensor HeadGuesser::State::logits(const at::Tensor& states) const {
  const int64_t k = config.num_heads;
  if (outputs.size() == 1) return outputs[0](states.reshape({-1, hidden_size})).to(at::kCPU);
  std::vector<at::Tensor> parts;
  for (int64_t head = 0; head < k; ++head)
    parts.push_back(outputs[static_cast<size_t>(head)](states.select(1, head).contiguous()));
  return at::stack(parts, 1).reshape({states.size(0) * k, -1}).to(at::kCPU);
}

/// Picks the best of each row into guesses.
void HeadGuesser::State::pick(const at::Tensor& logits, int64_t num_positions) {
  const auto num_rows = static_cast<size_t>(num_positions * config.num_heads);
  const auto row_size = static_cast<size_t>(logits.size(1)), kept = static_cast<size_t>(top_k);
  guesses.tokens.resize(num_rows * kept);
  guesses.log_probs.resize(num_rows * kept);
  const float* values = logits.const_data_ptr<float>();
  for (size_t row = 0; row < num_rows; ++row) {
    const float log_sum = best_guesses({values + row * row_size, row_size}, best);
    for (size_t rank = 0; rank < kept; ++rank) {
      const auto [logit, found] = best[rank];
      guesses.tokens[row * kept + rank] =
          token_of_row.empty() ? found : token_of_row[static_cast<size_t>(found)];
      guesses.log_probs[row * kept + rank] = logit - log_sum;
    }
  }
}

const HeadGuesses& HeadGuesser::guess(const at::Tensor& hidden, std::span<const TokenId> roots) {
  const c10::InferenceMode no_grad;
  const auto num_positions = static_cast<int64_t>(roots.size());
  MEDUSA_ASSERT(hidden.numel() == num_positions * state_->hidden_size, hidden.numel(),
                num_positions, state_->hidden_size);
  const at::Tensor rows = hidden.reshape({num_positions, state_->hidden_size});
  state_->pick(state_->logits(state_->states(rows, roots)).contiguous(), num_positions);
  return state_->guesses;
}

}  // namespace medusa
