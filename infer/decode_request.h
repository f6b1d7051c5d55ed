// One sequence to decode: what is asked for, what came out, and when it ends. Every decoder
// (decoder.h) shares these.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "infer/drafter.h"
#include "infer/logits/logits_processor.h"

namespace medusa {

using RequestId = int64_t;  // counts the requests of one decoder, from 0

struct DecodeLimits {
  int32_t max_new_tokens = 0;  // tokens, at least 1
  int32_t max_nodes = 64;      // N, nodes per sequence and pass, the root included
  std::vector<TokenId> eos;    // decoding stops after any of these; empty: never
};

enum class FinishReason {
  Eos,        // the model ended the sequence
  Length,     // max_new_tokens
  Context,    // the cache is full: the context ended the sequence
  Stopped,    // emit() returned false
  Cancelled,  // Decoder::cancel()
  Failed,     // its drafter, its rule, its emit() or the pass threw
};

/// A token as it is given to emit(), with the target's row that predicted it.
struct EmittedToken {
  TokenId id = 0;
  const TargetOutput* output = nullptr;  // valid during the call; null where a GPU decodes by
                                         // itself (cuda/device_decoder.h): its rows stay there
  int32_t row = 0;  // of output: logits[row] predicted the token, hidden[row] is the state at the
                    // token before it
  bool begins_step = true;  // the first token of a step
};

/// Some rows of a prompt, as they are given to on_prompt().
struct PromptRows {
  int64_t first = 0;  // row i is the target's prediction after token first + i of the prompt
  at::Tensor logits;  // [n, V] float32 on the CPU, valid during the call
};

/// One step of a sequence: what was proposed and what stood. Valid during the call that gets it.
struct StepView {
  const CandidateTree& tree;
  const Acceptance& accepted;
};

/// Makes the drafter of a new sequence.
using DrafterFactory = std::function<std::unique_ptr<Drafter>()>;

/// Everything that decides a sequence. Requests that run together may differ in all of it.
struct DecodeRequest {
  std::vector<TokenId> prompt;  // at least one token
  DecodeLimits limits;
  Random random{0};
  std::function<bool(const EmittedToken&)> emit;  // each token once, in order; false ends the text
  std::shared_ptr<const AcceptanceRule> rule{};   // null: the decoder's own
  DrafterFactory make_drafter{};                  // empty: the decoder's own
  std::vector<LogitsProcessorFactory> processors{};    // that change its logits, in this order
  std::function<void(const PromptRows&)> on_prompt{};  // all rows of the prompt but its last
                                                       // token's, in order, before the first token;
                                                       // empty: they are not computed
  std::function<void(const StepView&)> watch{};        // each step, before its tokens are emitted
};

struct DecodeStats {
  int64_t steps = 0;                 // target passes after prefill that this sequence took part in
  int64_t emitted = 0;               // tokens given to emit()
  int64_t proposed = 0;              // candidates: verify nodes below the root
  int64_t accepted = 0;              // candidates the rule let stand
  int64_t last_proposed = 0;         // candidates of the last step
  int64_t cached_prompt_tokens = 0;  // that the cache held, so that nothing computed them
  std::vector<int64_t> emitted_per_step;   // histogram: [n] = steps that emitted n tokens
  std::vector<int64_t> accepted_per_step;  // histogram: [n] = steps in which n candidates stood, up
                                           // to the depth of the deepest tree
  FinishReason finish = FinishReason::Length;

  /// Counts a step that emitted so many tokens, out of a tree with paths of up to `depth`
  /// candidates.
  void count_step(size_t num_emitted, int64_t num_proposed, int64_t num_accepted, int64_t depth);
};

/// Where the time of a decode went, seconds, all sequences together.
struct DecodeTimes {
  double prefill_s = 0;  // passes of prompts; a pass that holds trees too is shared out by its rows
  double propose_s = 0;
  double verify_s = 0;
  double accept_s = 0;  // the rule and emit()
  double commit_s = 0;  // commit and the drafter's observe()

  double decode_s() const { return propose_s + verify_s + accept_s + commit_s; }
  DecodeTimes since(const DecodeTimes& before) const {
    return {prefill_s - before.prefill_s, propose_s - before.propose_s, verify_s - before.verify_s,
            accept_s - before.accept_s, commit_s - before.commit_s};
  }
};

/// Why a sequence ends with the token that was just emitted, if it does.
/// @param token       the token emitted last.
/// @param emitted     tokens so far, this one included.
/// @param num_tokens  of prompt and text together.
/// @param wanted      what emit() returned.
/// @param max_rows    of the target.
std::optional<FinishReason> finish_reason(const DecodeLimits& limits, TokenId token,
                                          int64_t emitted, int64_t num_tokens, bool wanted,
                                          int64_t max_rows);

/// Cache rows that a sequence may have at most: its prompt, its tokens and a last tree, as far as
/// the target goes.
int64_t rows_needed(int64_t prompt_tokens, const DecodeLimits& limits, int64_t max_rows);

/// @throws UserError  all of a cache of total_rows is too small for what a request may need.
void check_room(int64_t prompt_tokens, const DecodeLimits& limits, int64_t max_rows,
                int64_t total_rows);

/// @param max_rows    of the target, for one sequence.
/// @param total_rows  of the target, for all of them.
/// @throws UserError  the prompt is empty or longer than the target's rows, a limit is below 1, or
///                    as check_room().
void check_request(const DecodeRequest& request, int64_t max_rows, int64_t total_rows);

}  // namespace medusa
