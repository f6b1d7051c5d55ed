// The speculative decoding loop: propose, verify, accept, commit. One sequence or many.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "infer/drafter.h"

namespace medusa {

struct DecodeLimits {
  int32_t max_new_tokens = 0;  // tokens, at least 1
  int32_t max_nodes = 64;      // N, nodes per sequence and pass, the root included
  std::vector<TokenId> eos;    // decoding stops after any of these; empty: never
};

enum class FinishReason {
  Eos,      // the model ended the text
  Length,   // max_new_tokens
  Context,  // the cache is full: the context ended the text
  Stopped,  // emit() returned false
};

/// A token as it is given to emit(), with the target's row that predicted it.
struct EmittedToken {
  TokenId id = 0;
  const TargetOutput* output = nullptr;  // valid during the call; null where a GPU decodes by
                                         // itself (cuda/device_decoder.h): its rows stay there
  int32_t row = 0;  // of output: logits[row] predicted the token, hidden[row] is the state at the
                    // token before it
};

/// One sequence to decode.
struct DecodeRequest {
  std::vector<TokenId> prompt;  // at least one token
  DecodeLimits limits;
  Random random{0};
  std::function<bool(const EmittedToken&)> emit;  // each token once, in order; false ends the text
};

struct DecodeStats {
  int64_t steps = 0;     // target passes after prefill that this sequence took part in
  int64_t emitted = 0;   // tokens given to emit()
  int64_t proposed = 0;  // candidates: verify nodes below the root
  int64_t accepted = 0;  // candidates the rule let stand
  std::vector<int64_t> emitted_per_step;  // histogram: [n] = steps that emitted n tokens
  FinishReason finish = FinishReason::Length;
};

/// Where the time of a decode went, seconds, all sequences together.
struct DecodeTimes {
  double prefill_s = 0;
  double propose_s = 0;
  double verify_s = 0;
  double accept_s = 0;  // the rule and emit()
  double commit_s = 0;  // commit and the drafter's observe()

  double decode_s() const { return propose_s + verify_s + accept_s + commit_s; }
};

/// Gives a fresh drafter for a new sequence.
using DrafterFactory = std::function<std::unique_ptr<Drafter>()>;

/// Runs requests until next() has no more, as many at a time as the target has free slots; a slot
/// that becomes free is refilled at once. finished(i, stats) is called once per request, in the
/// order in which they end; i counts calls of next(). Returns early, with all slots closed, when
/// finished() returns false.
///
/// @param target  has a free slot.
/// @param rule    judges the sequences of a pass at the same time, on several threads.
/// @throws UserError  a prompt is empty or longer than the cache. Whatever target, drafter or rule
///                    throws passes through. All slots are closed then; what was emitted stands.
DecodeTimes decode(TargetModel& target, const AcceptanceRule& rule,
                   const DrafterFactory& make_drafter,
                   const std::function<std::optional<DecodeRequest>()>& next,
                   const std::function<bool(size_t, const DecodeStats&)>& finished);

/// One request by itself.
struct DecodeResult {
  DecodeStats stats;
  DecodeTimes times;
};
DecodeResult decode_one(TargetModel& target, const AcceptanceRule& rule,
                        const DrafterFactory& make_drafter, DecodeRequest request);

}  // namespace medusa
