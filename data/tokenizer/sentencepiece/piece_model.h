// Cuts normalised text into the pieces of a SentencePiece vocabulary: the interface of its models.
#pragma once

#include <string_view>
#include <vector>

#include "data/tokenizer/unknown_text.h"

namespace medusa {

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
