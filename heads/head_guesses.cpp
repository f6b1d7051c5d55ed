#include "heads/head_guesses.h"

namespace medusa {

void HeadGuesses::reshape(int64_t num_positions, int64_t heads, int64_t guesses_per_head) {
  num_heads = heads;
  top_k = guesses_per_head;
  const auto size = static_cast<size_t>(num_positions * num_heads * top_k);
  tokens.resize(size);
  log_probs.resize(size);
}

void GuessPicker::pick(std::span<const float> logits, int64_t row, HeadGuesses& guesses) {
  const float log_sum = best_guesses(logits, best_);
  put(best_, log_sum, row, guesses);
}

void GuessPicker::put(std::span<const ScoredRow> best, float log_sum, int64_t row,
                      HeadGuesses& guesses) const {
  size_t place = static_cast<size_t>(row) * best.size();
  for (const auto& [logit, found] : best) {
    guesses.tokens[place] =
        token_of_row_.empty() ? found : token_of_row_[static_cast<size_t>(found)];
    guesses.log_probs[place++] = logit - log_sum;
  }
}

}  // namespace medusa
