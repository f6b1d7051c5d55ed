#include "heads/reference_heads.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "backbone/linear.h"
#include "base/check.h"
#include "heads/best_on_device.h"

namespace medusa {
namespace {

class ReferenceHeads : public HeadsBackend {
 public:
  ReferenceHeads(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
                 const ExecutionContext& execution);

  void draft(const HeadQuery& query, HeadDrafts& drafts) override;
  void begin(const HeadQuery& query, HeadDrafts& drafts) override;
  void correct(int64_t head, std::span<const TokenId> tokens, HeadDrafts& drafts) override;
  const char* name() const override { return outputs_.front().kernels(); }

 private:
  /// One residual layer of one head.
  struct Block {
    Linear first;     // [H, (1 + E) H]
    at::Tensor bias;  // [H] float32
    Linear second;    // [H, H]; unused where no tokens are read
  };

  at::Tensor embeddings(const HeadQuery& query) const;
  at::Tensor state(int64_t head, const at::Tensor& hidden, const at::Tensor& embeddings) const;
  at::Tensor logits(const HeadQuery& query) const;
  at::Tensor correction(int64_t head, std::span<const TokenId> tokens) const;
  void pick(const at::Tensor& logits, HeadDrafts& drafts);

  HeadsConfig config_;
  at::TensorOptions rows_;  // dtype and device of what the heads read
  int64_t hidden_size_ = 0, top_k_ = 0;
  std::vector<TokenId> token_of_row_;  // [V_t]; empty: a row is its token
  Weights non_layer_;                  // only the embedding [V, H]; none for HeadInput::Hidden
  double gain_ = 1;                    // embedding_gain() of the backbone
  std::vector<Block> blocks_;          // [K * layers_per_head], head-major
  std::vector<Linear> outputs_;        // one of [V_t, H] if shared, else K; of low rank [V_t, r]
  std::vector<Linear> downs_;          // K of [r, H] of low-rank outputs, else none
  std::vector<Linear> corrections_;    // [K - 1] of [V_t, R], or none
  std::optional<DraftCorrection> correction_;
  std::vector<int32_t> row_of_token_;  // [V] output rows, of corrected heads
  at::Tensor begun_;                   // [K', V_t] float32 logits, see begin()
  DraftPicker picker_;
};

ReferenceHeads::ReferenceHeads(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
                               const ExecutionContext& execution)
    : config_(heads.config),
      rows_(backbone.lm_head.options()),
      hidden_size_(heads.hidden_size),
      top_k_(top_k),
      token_of_row_(heads.kept_tokens),
      picker_(token_of_row_, top_k) {
  // On a GPU LibTorch multiplies, in the numbers of the states.
  const bool quantized = backbone.kind != QuantKind::None && backbone.embedding.is_cpu();
  const auto matmul = [&](const at::Tensor& weight) {
    return quantized ? Linear(quantize_matrix(weight), execution)
                     : Linear(weight.to(backbone.lm_head.scalar_type()).contiguous(), execution);
  };
  if (config_.input != HeadInput::Hidden) {
    non_layer_.embedding = backbone.embedding;
    gain_ = embedding_gain(backbone);
  }
  for (const HeadBlock& block : heads.blocks)
    blocks_.push_back({matmul(block.weight), block.bias.to(at::kFloat),
                       block.second.defined() ? matmul(block.second) : Linear()});
  if (heads.outputs.empty()) outputs_.push_back(matmul(shared_output(heads, backbone)));
  for (const at::Tensor& output : heads.outputs) outputs_.push_back(matmul(output));
  for (const at::Tensor& down : heads.downs) downs_.push_back(matmul(down));
  if (!heads.correction) return;
  for (const at::Tensor& factor : heads.correction->factors) corrections_.push_back(matmul(factor));
  correction_ = heads.correction;
  row_of_token_ = rows_of_tokens(heads);
}

/// @returns [M, E, H] of what the last head reads, or undefined where heads read none.
at::Tensor ReferenceHeads::embeddings(const HeadQuery& query) const {
  const int64_t num_read = tokens_read(config_.input, query.last_head());
  if (num_read == 0) return {};
  std::vector<TokenId> tokens;
  for (int64_t m = 0; m < query.num_positions; ++m)
    for (int64_t i = 0; i < num_read; ++i) tokens.push_back(query.token(m, i));
  const at::Tensor ids = at::tensor(tokens, at::kInt).view({query.num_positions, num_read});
  return token_embeddings(non_layer_, gain_, ids.to(non_layer_.embedding.device()));
}

/// @param hidden      [M, H] compute dtype.
/// @param embeddings  [M, E, H] compute dtype.
/// @returns           [M, H] what the head's output multiplies.
at::Tensor ReferenceHeads::state(int64_t head, const at::Tensor& hidden,
                                 const at::Tensor& embeddings) const {
  const at::ScalarType dtype = hidden.scalar_type();
  const int64_t num_read = tokens_read(config_.input, head);
  at::Tensor tokens;  // [M, E H]
  if (num_read > 0) tokens = embeddings.narrow(1, 0, num_read).flatten(1);
  at::Tensor y = hidden;
  for (int64_t layer = 0; layer < config_.layers_per_head; ++layer) {
    const Block& block = blocks_[static_cast<size_t>(head * config_.layers_per_head + layer)];
    const at::Tensor read = num_read > 0 ? at::cat({y, tokens}, 1) : y;
    at::Tensor inner = at::silu(block.first(read) + block.bias);  // [M, H] float32
    if (num_read > 0) inner = block.second(inner.to(dtype));
    y = (y + inner).to(dtype);  // float32 sum, rounded once
  }
  return y;
}

/// @returns  [M K', V_t] float32, position-major, not corrected.
at::Tensor ReferenceHeads::logits(const HeadQuery& query) const {
  const at::Tensor rows =
      query.hidden.to(rows_).expand({query.num_positions, hidden_size_}).contiguous();
  const at::Tensor embedded = embeddings(query);
  std::vector<at::Tensor> states;  // [K'] of [M, H]
  for (int64_t head = query.first_head; head <= query.last_head(); ++head)
    states.push_back(state(head, rows, embedded));
  at::Tensor out;
  if (is_own(config_.output)) {
    std::vector<at::Tensor> parts;
    for (size_t i = 0; i < states.size(); ++i) {
      const size_t head = static_cast<size_t>(query.first_head) + i;
      const at::Tensor read =
          downs_.empty() ? states[i] : downs_[head](states[i]).to(states[i].scalar_type());
      parts.push_back(outputs_[head](read));
    }
    out = at::stack(parts, 1).flatten(0, 1);
  } else {
    out = outputs_[0](at::stack(states, 1).flatten(0, 1));
  }
  return out.contiguous();
}

/// @returns  [M, V_t] float32: what the head's logits gain after each token.
at::Tensor ReferenceHeads::correction(int64_t head, std::span<const TokenId> tokens) const {
  std::vector<int32_t> rows;
  for (const TokenId token : tokens) rows.push_back(row_of_token_[static_cast<size_t>(token)]);
  return corrections_[static_cast<size_t>(head - 1)](
      correction_rows(*correction_, rows, rows_.dtype().toScalarType()));
}

/// @param logits  [M K', V_t] as logits() gives them.
void ReferenceHeads::pick(const at::Tensor& logits, HeadDrafts& drafts) {
  if (!logits.is_cpu()) {
    const BestRows found = best_on_device(logits, top_k_);
    for (int64_t row = 0; row < found.size(); ++row)
      picker_.put(found.row(row), found.log_sums[static_cast<size_t>(row)], row, drafts);
    return;
  }
  const auto row_size = static_cast<size_t>(logits.size(1));
  const float* values = logits.const_data_ptr<float>();
  for (int64_t row = 0; row < logits.size(0); ++row, values += row_size)
    picker_.pick({values, row_size}, row, drafts);
}

void ReferenceHeads::draft(const HeadQuery& query, HeadDrafts& drafts) {
  const at::Tensor all = logits(query);
  const at::Tensor by_head = all.view({query.num_positions, query.num_heads, -1});
  for (int64_t head = std::max<int64_t>(query.first_head, 1);
       correction_ && head <= query.last_head(); ++head) {
    std::vector<TokenId> before;
    for (int64_t m = 0; m < query.num_positions; ++m) before.push_back(query.token(m, head));
    by_head.select(1, head - query.first_head).add_(correction(head, before));
  }
  drafts.reshape(query.num_positions, query.num_heads, top_k_);
  pick(all, drafts);
}

void ReferenceHeads::begin(const HeadQuery& query, HeadDrafts& drafts) {
  begun_ = logits(query);
  drafts.reshape(1, 1, top_k_);
  pick(begun_.narrow(0, 0, 1), drafts);
}

void ReferenceHeads::correct(int64_t head, std::span<const TokenId> tokens, HeadDrafts& drafts) {
  MEDUSA_ASSERT(begun_.defined() && head < begun_.size(0), head);
  drafts.reshape(std::ssize(tokens), 1, top_k_);
  pick(begun_[head] + correction(head, tokens), drafts);
}

}  // namespace

std::unique_ptr<HeadsBackend> make_reference_heads(const MedusaHeads& heads,
                                                   const Weights& backbone, int64_t top_k,
                                                   const ExecutionContext& execution) {
  return std::make_unique<ReferenceHeads>(heads, backbone, top_k, execution);
}

}  // namespace medusa
