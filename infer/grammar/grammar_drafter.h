// Keeps a drafter's trees inside a grammar, and drafts what the grammar forces.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "infer/decode_request.h"
#include "infer/drafter.h"
#include "infer/grammar/grammar_path.h"

namespace medusa {

/// Leaves out the candidates that the grammar has no place for, whose rows would be for nothing,
/// and puts a path below the root that spells the text which must come next: a key of a schema, the
/// rest of a word. That path needs no draft and may hold more tokens than the drafter's longest
/// (Zheng et al., "SGLang" arXiv:2312.07104 §4, jump-forward decoding). It is proposed like any
/// other path, so that the rule decides and the text is that of plain decoding.
class GrammarDrafter : public Drafter {
 public:
  /// @param kind  of the drafter: who proposes the forced tokens, where a tree says so.
  GrammarDrafter(std::unique_ptr<Drafter> drafter, DrafterKind kind,
                 const CompiledGrammar& grammar);

  std::span<const int32_t> feature_layers() const override { return drafter_->feature_layers(); }
  void begin(std::span<const TokenId> prompt) override;
  void read_prompt(const at::Tensor& features) override { drafter_->read_prompt(features); }
  CandidateTree propose(const DraftContext& context, const Random& random) override;
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override {
    drafter_->observe(tree, output, accepted);
  }

 private:
  bool follow(std::span<const TokenId> tokens);
  std::vector<size_t> allowed_nodes(const CandidateTree& tree);

  std::unique_ptr<Drafter> drafter_;
  DrafterKind kind_;
  GrammarPath path_;
  size_t num_followed_ = 0;  // tokens of prompt and text that it knows
};

/// A factory of drafters inside a grammar, which lives as long as it does. Drafters whose trees
/// must not be pruned are made as they are (those of no DrafterSpec::is_mergeable, but for merge).
DrafterFactory inside_grammar(DrafterFactory made, DrafterKind kind,
                              std::shared_ptr<const CompiledGrammar> grammar);

}  // namespace medusa
