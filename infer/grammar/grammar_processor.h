// Keeps a sequence inside its grammar, along every path of its trees.
#pragma once

#include "infer/grammar/grammar.h"
#include "infer/logits/logits_processor.h"

namespace medusa {

/// Tokens that the grammar has no place for cannot come. Masks are computed for the rows that a
/// rule reaches alone, and rows of neighboring nodes share the way to them.
class GrammarProcessor : public LogitsProcessor {
 public:
  explicit GrammarProcessor(std::shared_ptr<const CompiledGrammar> grammar);

  void take(TokenId token) override;
  void process(std::span<const TokenId> path, std::span<float> row) override;

 private:
  void go_to(std::span<const TokenId> path);

  std::shared_ptr<const CompiledGrammar> grammar_;
  std::unique_ptr<GrammarMatcher> matcher_;
  std::vector<TokenId> path_;  // that the matcher has taken behind the text
  std::vector<int32_t> mask_;
};

}  // namespace medusa
