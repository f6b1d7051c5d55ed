// Drafters propose; nothing else in infer/ keeps state about the text.
#pragma once

#include <span>

#include "base/random.h"
#include "infer/acceptance_rule.h"
#include "infer/target_model.h"

namespace medusa {

struct DraftContext {
  std::span<const TokenId> tokens;  // prompt and everything emitted; the last one is the root
  at::Tensor hidden;          // [H] target's state at the token before the root; undefined if none
  int32_t max_depth = 0;      // longest path below the root that can still be emitted
  int32_t max_nodes = 0;      // N must not exceed this; at least 1
  int32_t slot = -1;          // the sequence's slot in the target
  int32_t num_sequences = 1;  // that share the pass, this one included
  bool pruned_jointly = false;  // whoever gives accept_probs proposes all that may pay: the decoder
                                // chooses among the nodes of all sequences
};

/// Proposes candidates for one sequence; a new sequence gets a drafter of its own.
class Drafter {
 public:
  virtual ~Drafter() = default;

  /// The layers before which it reads the target's residual stream, ascending, at every token of
  /// the text; empty: none. observe() finds it in TargetOutput::features. Of drafters inside
  /// another one at most one reads any.
  virtual std::span<const int32_t> feature_layers() const { return {}; }

  /// Comes first, before the prompt runs.
  virtual void begin(std::span<const TokenId> /*prompt*/) {}

  /// Takes the features of the prompt's next tokens, of all but the last token in the end.
  /// @param features  [n, F, H] as in TargetOutput.
  virtual void read_prompt(const at::Tensor& /*features*/) {}

  virtual CandidateTree propose(const DraftContext& context, const Random& random) = 0;
  /// Takes what became of a step. Inside a drafter that merges several the tree is that of all of
  /// them, so that a drafter sees every state of the text, also where its own nodes were left out.
  virtual void observe(const CandidateTree& /*tree*/, const TargetOutput& /*output*/,
                       const Acceptance& /*accepted*/) {}
};

/// Plain decoding: proposes nothing. The baseline of every other drafter.
class NoneDrafter : public Drafter {
 public:
  CandidateTree propose(const DraftContext& context, const Random& /*random*/) override {
    return root_only(context.tokens.back());
  }
};

/// Of drafters inside another one, the one that reads features; null: none does.
/// @param drafter_of  of an element -> Drafter*.
template <typename Range, typename Projection>
Drafter* feature_reader(const Range& drafters, const Projection& drafter_of) {
  for (const auto& each : drafters)
    if (!drafter_of(each)->feature_layers().empty()) return drafter_of(each);
  return nullptr;
}

}  // namespace medusa
