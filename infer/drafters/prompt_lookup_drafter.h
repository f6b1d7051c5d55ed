// Prompt lookup: what followed the text's last tokens earlier, in the prompt or in the answer, is
// proposed again. A. Saxena, "Prompt Lookup Decoding" (2023); ours prefers the longest match, then
// the most frequent and most recent continuation, and proposes several as a tree.
#pragma once

#include "base/fields.h"
#include "infer/drafter.h"
#include "infer/drafters/suffix_automaton.h"

namespace medusa {

struct PromptLookupConfig {
  int32_t max_ngram = 8;
  int32_t min_ngram = 2;
  int32_t num_draft = 8;
  int32_t branches = 2;

  template <typename Fields>
  void fields(Fields& f) {
    f("max_ngram", max_ngram, "longest run of last tokens that is looked up", between(1, 64));
    f("min_ngram", min_ngram, "shortest such run; one token alone is often a false match",
      between(1, 64));
    f("num_draft", num_draft, "most tokens proposed one after the other", between(1, 63));
    f("branches", branches, "most continuations proposed at the same time", between(1, 32));
  }
  /// @throws UserError  min_ngram is above max_ngram.
  void validate() const;
};

/// Reads tokens alone. Each token of prompt and answer is indexed once.
class PromptLookupDrafter : public Drafter {
 public:
  explicit PromptLookupDrafter(const PromptLookupConfig& config);

  void begin(std::span<const TokenId> prompt) override { read(prompt); }

  /// The most probable continuation of the longest match; then, up to `branches`, the most probable
  /// place to leave what is proposed, and the continuations of shorter matches.
  CandidateTree propose(const DraftContext& context, const Random& random) override;

 private:
  /// Appends what the text has grown by.
  void read(std::span<const TokenId> tokens);

  PromptLookupConfig config_;
  SuffixAutomaton text_;
};

}  // namespace medusa
