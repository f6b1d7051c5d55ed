// What a tokenizer does to text before it looks for words or pieces.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/tokenizer/sentencepiece/character_map.h"

namespace medusa {

/// How SentencePiece writes a space: U+2581.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

/// Unicode normal form that text is brought to.
enum class Normalization { None, Nfc, Nfd, Nfkc, Nfkd };

/// What stands before a section of text: nothing, or an added token of one of the two kinds.
enum class SectionStart { Text, SpecialToken, OrdinaryToken };

/// Steps, each changing what the one before it left.
///
/// Thread safety: const calls may run at the same time.
class TextNormalizer {
 public:
  /// Every occurrence of a text that is not empty, from left to right.
  struct Replace {
    std::string from;
    std::string to;
  };
  /// A text before each section that is not empty and begins so, or earlier in the order of
  /// SectionStart.
  struct Prefix {
    std::string text;
    SectionStart last = SectionStart::OrdinaryToken;
    bool unless_there = false;  // not before a section that begins with it already
  };
  /// Of several spaces one is left, at the start and end none. A written space mark at the end
  /// counts too, as in SentencePiece.
  struct TrimSpaces {};

  using Step = std::variant<Normalization, Replace, Prefix, TrimSpaces, CharacterMap>;

  void add(Step step) { steps_.push_back(std::move(step)); }
  bool empty() const { return steps_.empty(); }

  /// @param text  valid UTF-8.
  std::string apply(std::string_view text, SectionStart start) const;

 private:
  std::vector<Step> steps_;
};

/// What Llama's tokenizer does: a space before the text and behind special tokens if adds_space is
/// set, then every space becomes the mark.
TextNormalizer llama_normalizer(bool adds_space);

}  // namespace medusa
