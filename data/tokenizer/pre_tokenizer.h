// Cuts text into the words inside which byte-level BPE may merge.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizer/regex.h"

namespace medusa {

/// Steps, each cutting the pieces that the one before it left. Lookahead of a pattern ends with the
/// piece, so the order of the steps matters.
///
/// Thread safety: const calls may run at the same time.
class PreTokenizer {
 public:
  /// A step that makes every match of a pattern a piece of its own, and so every gap between two.
  struct Split {
    Regex pattern;
    bool drop_matches = false;  // matches are left out
    bool drop_gaps = false;     // what stands between matches is left out
  };

  /// The kinds that GGUF files name in tokenizer.ggml.pre: "gpt-2", "smollm", "qwen2", "llama-bpe"…
  /// @throws UserError  one we do not know; source is the file.
  static PreTokenizer named(std::string_view name, const std::string& source);

  /// The regular expressions that one of these kinds cuts at, one step each. The same errors.
  static std::vector<std::string> patterns_of(std::string_view name, const std::string& source);

  void add_split(Split step) { steps_.push_back({std::move(step), false, false}); }

  /// The step of byte-level pre-tokenizers: GPT-2's pattern, unless the file switches it off, and
  /// optionally a space before each piece that has none.
  void add_byte_level(bool use_pattern, bool prefix_space, const std::string& source);

  /// Hands over the pieces from left to right. They point into text, or (after a step that adds
  /// spaces) to memory that lives during the call.
  /// @param text  valid UTF-8.
  void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;

 private:
  struct Step {
    Split split;
    bool prefix_space;
    bool only_prefix;  // the pattern is not used
  };
  struct Run;

  std::vector<Step> steps_;
};

}  // namespace medusa
