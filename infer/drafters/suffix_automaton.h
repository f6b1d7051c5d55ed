// A growing text, indexed by everything that occurs in it: which suffixes came up before, and what
// followed them. Blumer et al., "The smallest automaton recognizing the subwords of a text" (1985).
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/token.h"

namespace medusa {

/// A state stands for the strings that end at the same places of the text; they are suffixes of
/// one another. Its link leads to the longest shorter suffix, which ends at more places.
///
/// Appending n tokens takes O(n · max_context) in the worst case and O(n) on text that does not
/// repeat itself at length; memory is O(n).
class SuffixAutomaton {
 public:
  /// A suffix of the text that also occurs before its end.
  struct Match {
    int32_t state = 0;
    int32_t length = 0;  // tokens; 0: nothing matches
  };

  /// A token that followed somewhere.
  struct Continuation {
    TokenId token = 0;
    int64_t count = 0;  // how often it followed
    int64_t last = 0;   // where it did so last, index in the text
    int32_t state = 0;  // of the string with the token
  };

  /// @param max_context  tokens; strings up to this long are counted. At least 1.
  explicit SuffixAutomaton(int32_t max_context);

  void append(TokenId token);
  int64_t size() const { return size_; }  // tokens of the text

  /// The longest suffix that occurred before, of at most max_length tokens.
  /// @param max_length  1 to max_context.
  Match longest_match(int32_t max_length) const;

  /// The longest suffix of a match that ends at more places than the match does.
  Match shorter(const Match& match) const;

  /// Lists what followed a state's strings, the most frequent first, of equally frequent the most
  /// recent. Counts are right for a string and token of at most max_context tokens together.
  std::vector<Continuation> continuations(int32_t state) const;

 private:
  struct State {
    int64_t length = 0;       // of its longest string
    int32_t link = -1;        // -1: the empty string has none
    int32_t first_edge = -1;  // head of a list through Edge::next
    int64_t count = 0;        // places where its strings end
    int64_t last = 0;         // the last of them
  };
  struct Edge {
    TokenId token = 0;
    int32_t to = 0;
    int32_t next = -1;
  };

  State& at(int32_t state) { return states_[static_cast<size_t>(state)]; }
  const State& at(int32_t state) const { return states_[static_cast<size_t>(state)]; }
  Edge* find_edge(int32_t state, TokenId token);
  void add_edge(int32_t from, TokenId token, int32_t to);
  int32_t clone(int32_t state, int64_t length);
  void extend(TokenId token);
  void follow(TokenId token);
  Match cut(Match match, int64_t length) const;

  int32_t max_context_;
  int64_t size_ = 0;
  std::vector<State> states_;  // [0] the empty string
  std::vector<Edge> edges_;
  std::unordered_map<uint64_t, size_t> edge_index_;  // (state, token) -> edges_
  int32_t whole_ = 0;                                // state of the whole text
  Match match_;  // the longest suffix that occurred before, of at most max_context_ tokens
};

}  // namespace medusa
