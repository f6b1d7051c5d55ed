#include "data/tokenizer/byte_alphabet.h"

#include "base/utf8.h"

namespace medusa {
namespace {

constexpr uint32_t kFirstStandIn = 0x100;  // the character of the first byte that is not visible
constexpr size_t kStandIns = 68;

constexpr bool is_visible(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

struct Alphabet {
  std::array<uint16_t, 256> character{};      // of each byte
  std::array<uint8_t, kStandIns> stand_in{};  // the byte of U+0100 + i

  constexpr Alphabet() {
    uint32_t next = 0;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (is_visible(byte)) {
        character[byte] = static_cast<uint16_t>(byte);
      } else {
        stand_in[next] = static_cast<uint8_t>(byte);
        character[byte] = static_cast<uint16_t>(kFirstStandIn + next++);
      }
    }
  }
};
constexpr Alphabet kAlphabet;

}  // namespace

std::optional<std::string> bytes_of_token(std::string_view token) {
  std::string bytes;
  while (!token.empty()) {
    const auto step = read_utf8(token);
    if (step.kind != Utf8Step::Kind::Character) return std::nullopt;
    const uint32_t c = step.codepoint;
    if (c < 0x100 && is_visible(c))
      bytes += static_cast<char>(c);
    else if (c >= kFirstStandIn && c < kFirstStandIn + kStandIns)
      bytes += static_cast<char>(kAlphabet.stand_in[c - kFirstStandIn]);
    else
      return std::nullopt;
    token.remove_prefix(step.size);
  }
  return bytes;
}

std::string token_of_bytes(std::string_view bytes) {
  std::string token;
  for (const char byte : bytes) {
    const uint16_t c = kAlphabet.character[static_cast<uint8_t>(byte)];
    if (c < 0x80) {
      token += static_cast<char>(c);
    } else {  // below U+0800: two bytes
      token += static_cast<char>(0xC0 | (c >> 6));
      token += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return token;
}

}  // namespace medusa
