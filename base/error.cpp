#include "base/error.h"

#include <fmt/format.h>

#include <string_view>

#include "base/shown_text.h"

namespace medusa {
namespace {

constexpr size_t kMostBytes = 4096;  // of a message; the longest of ours are half as long
constexpr size_t kHead = 3072, kTail = 896;

/// Where the character begins that the byte belongs to.
size_t character_start(std::string_view utf8, size_t at) {
  while (at > 0 && (static_cast<unsigned char>(utf8[at]) & 0xC0) == 0x80) --at;
  return at;
}

/// Without its middle when a name or value that it quotes is as long as a book. What to do stands
/// at the end.
std::string message_text(const std::string& message) {
  std::string text = shown_text(message);
  if (text.size() <= kMostBytes) return text;
  const size_t head = character_start(text, kHead);
  const size_t tail = character_start(text, text.size() - kTail);
  return fmt::format("{} [{} bytes left out] {}", std::string_view(text).substr(0, head),
                     tail - head, std::string_view(text).substr(tail));
}

}  // namespace

UserError::UserError(const std::string& message) : std::runtime_error(message_text(message)) {}

}  // namespace medusa
