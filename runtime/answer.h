// One answer: decoding, detokenizing as it goes, stop strings, numbers about it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infer/decoder.h"
#include "infer/infer_config.h"
#include "runtime/model.h"

namespace medusa {

struct TokenLogprobs {
  double chosen = 0;                                // log p of the emitted token
  std::vector<std::pair<TokenId, double>> largest;  // the target's most probable tokens, best first
};

/// What one step of the decoder gave.
struct AnswerStep {
  int32_t num_tokens = 0;
  std::string text;  // that became readable with them
};

struct Answer {
  std::string text;                     // special tokens and stop strings left out
  std::vector<TokenId> tokens;          // as decoded, the end token included
  std::vector<TokenLogprobs> logprobs;  // one per token; empty if not asked for
  std::vector<AnswerStep> steps;        // their texts in order are the text
  DecodeStats stats;
  DecodeTimes times;
  bool stopped_by_text = false;  // a stop string ended it
};

/// One text to write. What is empty is as it is for all.
struct AnswerRequest {
  std::vector<TokenId> prompt;
  uint64_t seed = 1;
  std::optional<InferConfig> infer{};              // its drafter, rule, sampling and max_new_tokens
  std::optional<std::vector<std::string>> stop{};  // texts that end it
};

/// Of all texts that do not say otherwise.
struct AnswerOptions {
  int32_t max_new_tokens = 256;
  std::vector<std::string> stop;
  int64_t logprobs = 0;  // most probable tokens to keep; 0: none, not even the chosen
  /// Gets the texts piece by piece as they arise, with the index of the request; false ends that
  /// text. Empty: nobody looks on.
  std::function<bool(size_t, std::string_view)> show;
  /// Makes the drafter of a request that has settings of its own; not empty where one has.
  std::function<DrafterFactory(const InferConfig&)> drafter_of{};
};

/// Several at once, as many as the decoder has free slots, each the one that would be given alone.
/// The time of all is shared out by their tokens. When interrupted, each holds what it has. What
/// show() throws ends all of them, and the decoder is idle again.
/// @param decoder  idle. For probabilities it must be one that emits outputs (make_decoder()), for
///                 requests with settings of their own a HostDecoder.
/// @throws UserError  a prompt does not fit into the cache.
std::vector<Answer> answer_together(const Model& model, Decoder& decoder,
                                    const std::vector<AnswerRequest>& requests,
                                    const AnswerOptions& options);

/// answer_together() of one.
Answer answer(const Model& model, Decoder& decoder, AnswerRequest request,
              const AnswerOptions& options);

/// "eos", "length", "context", "stop" or "interrupted": by the process or by show().
const char* finish_name(const Answer& answer);

}  // namespace medusa
