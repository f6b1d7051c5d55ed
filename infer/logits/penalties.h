// Penalties for tokens that have come before: OpenAI's presence and frequency, Hugging Face's
// repetition.
#pragma once

#include <cstdint>
#include <vector>

#include "infer/logits/logits_processor.h"

namespace medusa {

/// The strength of each penalty, as it is known elsewhere.
struct PenaltyConfig {
  double presence = 0;    // taken off the logit of each token that the text holds (OpenAI)
  double frequency = 0;   // taken off for each time that it holds it (OpenAI)
  double repetition = 1;  // of each token that the prompt or the text holds, a positive logit is
                          // divided by it and a negative one multiplied (Keskar et al.,
                          // arXiv:1909.05858, as in Hugging Face's generate)

  bool changes() const { return presence != 0 || frequency != 0 || repetition != 1; }
};

/// Repetition is applied first, as its sign depends on the logit; then frequency and presence.
class Penalties : public LogitsProcessor {
 public:
  explicit Penalties(const PenaltyConfig& config) : config_(config) {}

  void begin(std::span<const TokenId> prompt) override;
  void take(TokenId token) override;
  void process(std::span<const TokenId> path, std::span<float> row) override;

 private:
  struct Seen {
    TokenId id = 0;
    int32_t in_text = 0;  // how often
    bool in_prompt = false;
  };
  Seen& seen(TokenId id);

  PenaltyConfig config_;
  std::vector<Seen> seen_;  // by id
};

}  // namespace medusa
