// Regular expressions over UTF-8 text, as tokenizer files write them. The only user of PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace medusa {

/// A compiled pattern. \s and \S mean Unicode's White_Space, as in the engines that these patterns
/// were written for (PCRE2's own \s has U+180E too); \p{L}, \p{N}, (?i:…) and lookahead are there.
///
/// Thread safety: const calls may run at the same time, each with a Scratch of its own.
class Regex {
 public:
  /// @throws UserError  pattern is not a regular expression; source (file, key) stands in the text.
  Regex(std::string_view pattern, const std::string& source);

  /// Working memory of searches; may be used again and again.
  class Scratch {
   public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

   private:
    friend class Regex;
    struct State;
    std::unique_ptr<State> state_;
  };

  /// The first match at or after start, as [begin, end). Empty matches are not reported.
  /// Lookahead ends at the end of text; lookbehind sees what is before start.
  /// @param text  valid UTF-8.
  /// @throws UserError  the pattern is too costly for this text.
  std::optional<std::pair<size_t, size_t>> find(std::string_view text, size_t start,
                                                Scratch& scratch) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;  // copies share it; it is not changed
};

}  // namespace medusa
