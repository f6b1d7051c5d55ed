// Random valid UTF-8 that favours what tokenizers stumble over.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace medusa::fixtures {

inline void append_utf8(std::string& text, uint32_t c) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xC0 | c >> 6);
    add(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    add(0xE0 | c >> 12);
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  } else {
    add(0xF0 | c >> 18);
    add(0x80 | (c >> 12 & 0x3F));
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  }
}

/// Letters, digits, white space of all kinds, contractions, marks and any code point at all.
inline std::string random_text(std::mt19937& random, size_t most_characters) {
  static const std::string kPieces[] = {
      " ",       "  ",         "\n",          "\r\n", "\t",     "'s",     "'LL",
      "12",      "3456",       "the",         "Été",  "\u3000", "\u180E", "\u0085",
      "e\u0301", "<|im_end|>", "👩‍💻", "!?",   "don't",  "\u2028", "."};
  std::string text;
  const size_t size = random() % (most_characters + 1);
  for (size_t i = 0; i < size; ++i) {
    switch (random() % 4) {
      case 0:
        text += static_cast<char>('a' + random() % 26);
        break;
      case 1:
        append_utf8(text, static_cast<uint32_t>(random() % 0x80));
        break;
      case 2:
        text += kPieces[random() % std::size(kPieces)];
        break;
      default: {
        const auto c = static_cast<uint32_t>(random() % 0x110000);
        append_utf8(text, c >= 0xD800 && c < 0xE000 ? 0xFFFD : c);
      }
    }
  }
  return text;
}

}  // namespace medusa::fixtures
