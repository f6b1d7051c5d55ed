// Token ids -> text, one token at a time, never half a character.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace medusa {

/// Thread safety: none.
class TextStream {
 public:
  /// @param tokenizer  must outlive the stream.
  /// @param show_special  false: special tokens give no text.
  explicit TextStream(const Tokenizer& tokenizer, bool show_special = false)
      : tokenizer_(tokenizer), show_special_(show_special) {}

  /// The text that has become certain by this token; empty while a character is unfinished. Bytes
  /// that can be no part of a character become U+FFFD as soon as that is certain.
  std::string add(TokenId id);

  /// What is left: an unfinished character becomes U+FFFD. The stream is then as new.
  std::string finish();

  /// Forgets an unfinished character.
  void drop_unfinished() { pending_.clear(); }

 private:
  const Tokenizer& tokenizer_;
  bool show_special_;
  std::string pending_;  // at most three bytes: the start of a character
};

/// Finds stop strings in a text that comes in pieces. Text is held back only as long as it may be
/// the start of a stop string.
///
/// Thread safety: none.
class StopMatcher {
 public:
  /// @param stops  strings that end the text; empty ones are a bug of the caller.
  explicit StopMatcher(std::vector<std::string> stops);

  /// @param text  the next piece; ignored once stopped.
  /// @returns what may now be shown. Once a stop string is complete: what is left before it.
  std::string add(std::string_view text);

  /// No more text comes: what was held back. Empty once stopped.
  std::string finish();

  /// True as soon as a stop string is complete.
  bool stopped() const { return !stop_.empty(); }
  /// That stop string; empty: none yet.
  const std::string& stop() const { return stop_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;  // not shown yet
  std::string stop_;
};

/// Token ids -> the text to show, up to a stop string.
///
/// Thread safety: none.
class TextUntilStop {
 public:
  /// @param tokenizer  must outlive this.
  /// @param stops      as StopMatcher's.
  TextUntilStop(const Tokenizer& tokenizer, std::vector<std::string> stops)
      : stream_(tokenizer), matcher_(std::move(stops)) {}

  /// @returns  what may be shown now.
  std::string add(TokenId id) { return matcher_.add(stream_.add(id)); }

  /// The same for a token in whose text no stop string is looked for.
  std::string add_unmatched(TokenId id) { return stream_.add(id); }

  /// No more tokens come: what was held back. Empty once stopped.
  std::string finish() {
    const std::string last = matcher_.add(stream_.finish());
    return last + matcher_.finish();
  }

  /// No more tokens come, and finish() shall say nothing of a character that is unfinished.
  void drop_unfinished() { stream_.drop_unfinished(); }

  bool stopped() const { return matcher_.stopped(); }
  const std::string& stop() const { return matcher_.stop(); }  // empty: none yet

 private:
  TextStream stream_;
  StopMatcher matcher_;
};

}  // namespace medusa
