// Cuts normalized text into the pieces of a SentencePiece vocabulary: the interface of its models,
// and what they write for characters that are no piece.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace medusa {

struct UnknownText {
  std::array<TokenId, 256> byte_ids{};  // -1: there is no such byte piece
  std::optional<TokenId> token;         // where a byte piece is missing; none: nothing is written
  bool fuse = true;                     // neighboring unknown characters share one token

  /// @param characters  UTF-8.
  /// @param begin  of the text that is being encoded, in ids: where fusing ends.
  void write(std::string_view characters, size_t begin, std::vector<TokenId>& ids) const {
    const auto id_of = [&](char byte) { return byte_ids[static_cast<uint8_t>(byte)]; };
    if (std::all_of(characters.begin(), characters.end(),
                    [&](char byte) { return id_of(byte) >= 0; })) {
      for (const char byte : characters) ids.push_back(id_of(byte));
    } else if (token && !(fuse && ids.size() > begin && ids.back() == *token)) {
      ids.push_back(*token);
    }
  }
};

/// Thread safety: const calls may run at the same time.
class PieceModel {
 public:
  virtual ~PieceModel() = default;

  /// Appends the ids of text.
  /// @param text  valid UTF-8, spaces marked as the vocabulary has them.
  virtual void encode(std::string_view text, const UnknownText& unknown,
                      std::vector<TokenId>& ids) const = 0;
};

}  // namespace medusa
