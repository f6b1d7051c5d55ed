// A text that the server is asked for: the request, the pieces it comes in, and its end.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "infer/decode_request.h"
#include "infer/drafter_kind.h"
#include "infer/grammar/grammar.h"
#include "infer/infer_config.h"
#include "infer/logits/logits_config.h"

namespace medusa {

struct GenerationRequest {
  std::vector<TokenId> prompt;  // at least one token
  int32_t max_tokens = 256;     // 0: only what is known of the prompt
  bool fills_context = false;   // more were asked for than the context has room for
  SamplingConfig sampling;
  LogitsConfig logits{};                             // its min_tokens holds for stop, too
  std::shared_ptr<const CompiledGrammar> grammar{};  // that the answer follows; null: any text
  RuleKind rule = RuleKind::Auto;
  std::optional<TypicalConfig> typical{};  // none: the server's own
  std::optional<DrafterKind> drafter{};    // none: the server's own
  uint64_t seed = 1;
  std::optional<int32_t> tree_size{};  // nodes of a step's tree, at most; none: the decoder's own
  std::vector<std::string> stop;       // texts that end the answer and are not shown; none is empty
  std::vector<TokenId> stop_tokens;    // tokens that do
  bool ignore_eos = false;  // only max_tokens, stop, stop_tokens and the context end the text
  std::optional<int64_t> logprobs{};  // how many of the most probable tokens; 0: the chosen alone
  bool prompt_logprobs = false;       // those of the prompt's tokens, too
  bool steps = false;                 // each piece carries the tree of its step
  // The fields that the client gave prompt and max_tokens in, for errors.
  std::string prompt_field = "prompt", length_field = "max_tokens";
};

struct GeneratedToken {
  TokenId id = 0;
  double logprob = 0;  // by the model's own distribution: temperature 1, nothing changed or
                       // filtered; 0 where none was asked for, or nothing stands before the token
  std::vector<std::pair<TokenId, double>> most_probable;  // with their log-probabilities
};

/// The candidate tree of a step, for people to look at.
struct StepTrace {
  struct Node {
    TokenId token = 0;
    int32_t parent = -1;                      // index of a node before it; the root has none
    DrafterKind drafter = DrafterKind::None;  // who proposed it; of the root: None
  };
  std::vector<Node> nodes;        // those that could be accepted, the root first
  std::vector<int32_t> accepted;  // nodes below the root, top down
  TokenId next = 0;               // that the model itself added after them
};

/// What one step added to a text.
struct GenerationPiece {
  std::vector<GeneratedToken> prompt;  // with the first piece, if prompt_logprobs were asked for
  std::string text;                    // may be empty: a character or a stop string is unfinished
  std::vector<GeneratedToken> tokens;
  int64_t steps = 0, proposed = 0, accepted = 0;  // that made it, and their candidates
  std::optional<StepTrace> step{};

  /// About the memory that it holds while it waits for its reader.
  size_t bytes() const {
    return text.size() + (step ? step->nodes.size() * sizeof(StepTrace::Node) : 0);
  }
};

struct GenerationEnd {
  DecodeStats stats;
  std::string stop_text;     // the stop string that ended it; empty: none did
  std::exception_ptr error;  // what ended it, if stats.finish is Failed

  /// OpenAI's word for it: "stop" or "length".
  const char* reason() const {
    return stats.finish == FinishReason::Length || stats.finish == FinishReason::Context ? "length"
                                                                                         : "stop";
  }
};

/// Hears how a text grows. Calls come from the scheduler's thread, in order, on_end() last and
/// exactly once; they must neither block nor throw.
class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  virtual void on_piece(GenerationPiece piece) = 0;
  virtual void on_end(GenerationEnd end) = 0;
};

}  // namespace medusa
