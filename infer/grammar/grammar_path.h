// A grammar's matcher that goes from path to path of a tree.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "infer/grammar/grammar.h"

namespace medusa {

/// Stands behind a text, on a path below its last token. Neighboring paths share the way to them.
///
/// Thread safety: none.
class GrammarPath {
 public:
  explicit GrammarPath(std::unique_ptr<GrammarMatcher> matcher) : matcher_(std::move(matcher)) {}

  /// Goes from the path that it is on back to where both part, and on to the new one. Stops where
  /// an end token has come: nothing follows.
  /// @param path  tokens that the grammar lets come.
  void go_to(std::span<const TokenId> path) {
    const auto part = std::mismatch(path_.begin(), path_.end(), path.begin(), path.end());
    const auto back = static_cast<int32_t>(path_.end() - part.first);
    if (back > 0) matcher_->rollback(back);
    path_.erase(part.first, path_.end());
    for (const TokenId token : path.subspan(path_.size())) {
      if (matcher_->has_ended()) return;
      MEDUSA_ASSERT(go_on(token), token);
    }
  }

  /// The path grows by this token. @returns  false, and nothing has changed, where the grammar has
  /// no place for it.
  bool go_on(TokenId token) {
    if (!matcher_->accept(token)) return false;
    path_.push_back(token);
    return true;
  }

  /// The text grows by this token: the path is empty then. @returns  as above, for the text.
  bool take(TokenId token) {
    go_to({});
    return matcher_->accept(token);
  }

  GrammarMatcher& matcher() { return *matcher_; }

 private:
  std::unique_ptr<GrammarMatcher> matcher_;
  std::vector<TokenId> path_;  // that the matcher has taken behind the text
};

}  // namespace medusa
