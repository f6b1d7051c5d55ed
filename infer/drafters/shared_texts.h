// Finished answers that sequences of one process look up: an index in memory, bounded in bytes,
// which forgets the answers that were of no use for longest.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/token.h"

namespace medusa {

/// What is kept at a moment.
struct SharedUse {
  int64_t texts = 0;
  int64_t bytes = 0;  // close to what the system gave for them
};

/// A run of three tokens is the key to its newest places, so that an answer is found, added and
/// forgotten in time that does not grow with what is kept.
///
/// Thread safety: none. A decoder's drafters and whoever adds answers are on its one thread.
class SharedTexts {
 public:
  static constexpr int32_t kKeyTokens = 3;   // the shortest run that is found
  static constexpr size_t kMostPlaces = 64;  // of a run; the newest take the place of the oldest
  static constexpr int64_t kFewestBytes = 1 << 16;

  /// @param max_bytes  of texts and index together; at least kFewestBytes.
  explicit SharedTexts(int64_t max_bytes);

  /// Adds a text. Others are forgotten until there is room. One that is larger than all room or
  /// shorter than what can be found is left out; one that stands in another counts as a use of
  /// that.
  void add(std::vector<TokenId> text);

  /// Behind a token of a text.
  struct Place {
    uint32_t text = 0;  // counts all that were added; a forgotten one's is never used again
    uint32_t next = 0;  // index of the token that follows
  };

  /// Where a run of tokens occurs.
  struct Places {
    std::vector<Place> all;  // the newest first
    int32_t length = 0;      // of the run, tokens

    int64_t count() const { return std::ssize(all); }
  };

  /// The places of the longest run of last tokens that a text holds.
  /// @param most  tokens of it.
  /// @returns     none: not even kKeyTokens of them occur.
  Places longest_match(std::span<const TokenId> tokens, int32_t most) const;

  /// A token that follows a run somewhere, and the places of the run with it.
  struct Next {
    TokenId token = 0;
    Places places;
  };

  /// What follows a run, by ascending token. The end of a text is none of them.
  std::vector<Next> continuations(const Places& run) const;

  /// The texts at these places were of use: they are the last to be forgotten.
  void count_use(const Places& places);

  SharedUse use() const { return {std::ssize(texts_), bytes_}; }

 private:
  using Key = uint64_t;
  struct Text {
    std::vector<TokenId> tokens;
    std::list<uint32_t>::iterator place_in_use;
  };

  static Key key_of(std::span<const TokenId> run);
  static int64_t bytes_of(const std::vector<TokenId>& text);
  void note_place(Key key, Place place);
  int32_t match_before(const Place& place, std::span<const TokenId> tokens, int32_t most) const;
  bool stands_in_another(std::span<const TokenId> text);
  void forget_last();

  int64_t max_bytes_;
  int64_t bytes_ = 0;
  uint32_t added_ = 0;
  std::list<uint32_t> by_use_;  // the last used first
  std::unordered_map<uint32_t, Text> texts_;
  std::unordered_map<Key, std::vector<Place>> places_;  // behind each run of three, oldest first
};

}  // namespace medusa
