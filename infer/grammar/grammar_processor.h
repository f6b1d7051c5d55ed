// Keeps a sequence inside its grammar, along every path of its trees.
#pragma once

#include "infer/grammar/grammar_path.h"
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
  std::shared_ptr<const CompiledGrammar> grammar_;
  GrammarPath path_;
  std::vector<int32_t> mask_;
};

}  // namespace medusa
