// Temperature, top-k, top-p, min-p, and drawing with position-keyed noise.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/fields.h"
#include "base/random.h"
#include "base/token.h"

namespace medusa {

class ThreadPool;

struct SamplingConfig {
  double temperature = 0;  // 0: greedy
  int64_t top_k = 0;       // keep the k most probable tokens; 0: all
  double top_p = 1;        // keep the smallest set of tokens whose probability reaches this
  double min_p = 0;        // keep tokens at least this times as probable as the most probable one

  bool filters() const { return top_k > 0 || top_p < 1 || min_p > 0; }

  template <typename Fields>
  void fields(Fields& f) {
    f("temperature", temperature, "0 is greedy: always the most probable token", at_least(0.0));
    f("top_k", top_k, "keep the k most probable tokens; 0 keeps all", at_least<int64_t>(0));
    f("top_p", top_p, "keep the smallest set of tokens that reaches this probability",
      Rule<double>{"> 0 and <= 1", [](const double& p) { return p > 0 && p <= 1; }});
    f("min_p", min_p,
      "keep tokens at least this times as probable as the most probable one; 0 keeps all",
      between(0.0, 1.0));
  }
  void validate() const {}
};

/// One token that may be drawn.
struct WeightedToken {
  TokenId id = 0;
  double probability = 0;  // under the temperature, normalized over what the filters kept
};

/// The temperature, moved to where its inverse is a finite float above 0. Nearer to 0 the inverse
/// would be infinite, and the most probable token, 0 below the largest logit, would weigh 0 · ∞.
/// At both bounds logits as models give them have the distribution of the limit: the most probable
/// token alone, or all alike.
/// @param temperature  > 0.
double bounded_temperature(double temperature);

/// 1 / temperature, by which logits are multiplied; always finite and above 0.
float inverse_temperature(double temperature);

/// Where the largest logit of a row is not finite: a model whose file is damaged, or whose states
/// are too large for the dtype, gives such.
/// @throws UserError  always.
[[noreturn]] void refuse_logits();

/// Index of the largest value; the first of equals.
TokenId argmax(std::span<const float> logits);

/// log p of tokens after one row, at temperature 1, nothing filtered: what logprobs report.
class LogProbabilities {
 public:
  /// @param logits  kept by reference.
  explicit LogProbabilities(std::span<const float> logits);
  double of(TokenId token) const {
    return static_cast<double>(logits_[static_cast<size_t>(token)] - max_) - log_sum_;
  }

 private:
  std::span<const float> logits_;
  float max_ = 0;
  double log_sum_ = 0;
};

/// Gives the log-probability of one token.
double log_probability(std::span<const float> logits, TokenId token);

/// The count largest logits' tokens (all, if there are fewer), best first; of equal logits the
/// lower id first.
/// @param count  at least 1.
std::vector<TokenId> largest_tokens(std::span<const float> logits, int64_t count);

/// The distribution after temperature, top-k, top-p and min-p, in this order; tokens of probability
/// 0 and filtered tokens are left out. Sorted by probability where top-k or top-p filters, by id
/// else. min-p looks at the ratio of two tokens, so what it drops does not depend on the order.
/// @param config   temperature > 0.
/// @param threads  idle ones that help; null: none. No result depends on them, here or below.
std::vector<WeightedToken> target_distribution(std::span<const float> logits,
                                               const SamplingConfig& config,
                                               ThreadPool* threads = nullptr);

/// Draws by an exponential race (the Gumbel-max trick, Gumbel 1954, without its outer logarithm):
/// the token with the smallest -log(u) / p wins, u addressed by (use, position, token id). So the
/// draw for a position is the same whoever proposed the tokens before it.
TokenId draw(std::span<const WeightedToken> tokens, const Random& random, RandomUse use,
             int64_t position);

/// The token that draw() finds in target_distribution(), without making the list where nothing is
/// filtered.
/// @param config  temperature > 0.
TokenId sample(std::span<const float> logits, const SamplingConfig& config, const Random& random,
               RandomUse use, int64_t position, ThreadPool* threads = nullptr);

/// A row of a [N, V] float32 tensor on the CPU, without a new tensor.
std::span<const float> logits_row(const at::Tensor& logits, int64_t row);

}  // namespace medusa
