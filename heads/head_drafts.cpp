#include "heads/head_drafts.h"

namespace medusa {

void HeadDrafts::reshape(int64_t num_positions, int64_t heads, int64_t drafts_per_head) {
  num_heads = heads;
  top_k = drafts_per_head;
  const auto size = static_cast<size_t>(num_positions * num_heads * top_k);
  tokens.resize(size);
  log_probs.resize(size);
}

void DraftPicker::pick(std::span<const float> logits, int64_t row, HeadDrafts& drafts) {
  const float log_sum = top_k_drafts(logits, best_);
  put(best_, log_sum, row, drafts);
}

void DraftPicker::put(std::span<const ScoredRow> best, float log_sum, int64_t row,
                      HeadDrafts& drafts) const {
  size_t place = static_cast<size_t>(row) * best.size();
  for (const auto& [logit, found] : best) {
    drafts.tokens[place] =
        token_of_row_.empty() ? found : token_of_row_[static_cast<size_t>(found)];
    drafts.log_probs[place++] = logit - log_sum;
  }
}

}  // namespace medusa
