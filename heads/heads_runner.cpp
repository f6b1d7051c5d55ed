#include "heads/heads_runner.h"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "heads/prefix_model.h"

namespace medusa {

HeadsRunner::HeadsRunner(const MedusaHeads& heads, const Weights& backbone, int64_t top_k,
                         const ExecutionContext& execution)
    : config_(heads.config),
      num_heads_(heads.config.num_heads),
      hidden_size_(heads.hidden_size),
      vocab_size_(heads.vocab_size),
      top_k_(top_k) {
  const c10::InferenceMode no_grad;
  if (top_k < 1 || top_k > heads.output_rows())
    throw UserError(fmt::format(
        "heads: top_k is {}, expected 1 to {}, the tokens that the heads can draft; lower it",
        top_k, heads.output_rows()));
  backend_ = make_heads_backend(heads, backbone, top_k, execution);
  if (heads.prefix) prefix_ = std::make_unique<PrefixModel>(*heads.prefix, backbone, execution);
}

HeadsRunner::~HeadsRunner() = default;

void HeadsRunner::check(const HeadQuery& query) const {
  const int64_t num_positions = query.num_positions, num_states = query.hidden.size(0);
  MEDUSA_ASSERT(query.hidden.dim() == 2 && query.hidden.size(1) == hidden_size_, hidden_size_);
  MEDUSA_ASSERT(num_positions > 0 && (num_states == num_positions || num_states == 1),
                num_positions, num_states);
  MEDUSA_ASSERT(query.first_head >= 0 && query.num_heads >= 1 && query.last_head() < num_heads_,
                query.first_head, query.num_heads, num_heads_);
  const int64_t num_read = tokens_before(config_, query.last_head());
  const auto num_tokens = static_cast<int64_t>(query.tokens.size());
  MEDUSA_ASSERT((num_positions - 1) * query.stride + num_read <= num_tokens, num_positions,
                query.stride, num_read, num_tokens);
  for (int64_t m = 0; m < num_positions; ++m)
    for (int64_t i = 0; i < num_read; ++i)
      MEDUSA_ASSERT(query.token(m, i) >= 0 && query.token(m, i) < vocab_size_, query.token(m, i));
}

const HeadDrafts& HeadsRunner::draft(const HeadQuery& query) {
  const c10::InferenceMode no_grad;
  check(query);
  backend_->draft(query, drafts_);
  return drafts_;
}

const HeadDrafts& HeadsRunner::begin(const at::Tensor& hidden, TokenId root, int64_t num_heads) {
  const c10::InferenceMode no_grad;
  MEDUSA_ASSERT(is_corrected() && num_heads >= 1 && num_heads <= num_heads_, num_heads);
  MEDUSA_ASSERT(hidden.dim() == 2 && hidden.size(0) == 1 && hidden.size(1) == hidden_size_);
  MEDUSA_ASSERT(root >= 0 && root < vocab_size_, root);
  HeadQuery query{.hidden = hidden, .tokens = {&root, 1}};
  query.num_positions = 1;
  query.num_heads = num_heads;
  backend_->begin(query, begun_);
  return begun_;
}

const HeadDrafts& HeadsRunner::correct(int64_t head, std::span<const TokenId> tokens) {
  const c10::InferenceMode no_grad;
  MEDUSA_ASSERT(is_corrected() && head >= 1 && head < num_heads_ && !tokens.empty(), head);
  for (const TokenId token : tokens) MEDUSA_ASSERT(token >= 0 && token < vocab_size_, token);
  backend_->correct(head, tokens, drafts_);
  return drafts_;
}

const HeadDrafts& HeadsRunner::draft(const at::Tensor& hidden, std::span<const TokenId> text,
                                     int64_t num_heads) {
  const at::Tensor rows = hidden.dim() == 1 ? hidden.unsqueeze(0) : hidden;
  HeadQuery query{.hidden = rows, .tokens = text};
  query.num_positions = rows.size(0);
  query.num_heads = num_heads;
  return draft(query);
}

const HeadDrafts& HeadsRunner::draft_along(const at::Tensor& hidden,
                                           std::span<const TokenId> answer) {
  if (!prefix_) return draft(hidden, answer);
  const auto count = static_cast<size_t>(hidden.size(0));
  return draft(PrefixText(*prefix_).extend(hidden, answer.first(count)), answer);
}

}  // namespace medusa
