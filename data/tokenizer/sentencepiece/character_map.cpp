#include "data/tokenizer/sentencepiece/character_map.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"

namespace medusa {
namespace {

[[noreturn]] void fail(const std::string& source, const std::string& found) {
  throw UserError(fmt::format(
      "{}: {}, expected the character map of a SentencePiece model; the file is damaged, copy or "
      "download it again",
      source, found));
}

uint32_t read_u32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

bool is_value(uint32_t unit) { return (unit >> 31) != 0; }
bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFF; }
/// Byte that leads to a unit; no byte equals it where the unit is a value.
uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); }

}  // namespace

CharacterMap::CharacterMap(std::string_view blob, const std::string& source) {
  if (blob.size() < 4) fail(source, fmt::format("its character map has {} bytes", blob.size()));
  const size_t trie_bytes = read_u32(blob, 0);
  if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes > blob.size() - 4)
    fail(source, fmt::format("its character map of {} bytes says that {} of these are its trie",
                             blob.size(), trie_bytes));
  units_.resize(trie_bytes / 4);
  for (size_t i = 0; i < units_.size(); ++i) units_[i] = read_u32(blob, 4 + 4 * i);
  replacements_ = blob.substr(4 + trie_bytes);
  if (replacements_.empty() || replacements_.back() != '\0')
    fail(source, "the replacements of its character map do not end with a zero byte");
  for (const uint32_t unit : units_)
    if (is_value(unit) && value_of(unit) >= replacements_.size())
      fail(source, fmt::format("a value of its character map lies at byte {} of {}", value_of(unit),
                               replacements_.size()));
  if (!is_valid_utf8(replacements_)) fail(source, "a replacement is not UTF-8");
}

CharacterMap::Match CharacterMap::longest_match(std::string_view text) const {
  Match best;
  size_t node = offset_of(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size() || label_of(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (!has_value(unit)) continue;
    if (node >= units_.size() || !is_value(units_[node])) break;  // a damaged trie
    best = {i + 1, value_of(units_[node])};
  }
  return best;
}

std::string CharacterMap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Match match = longest_match(text);
    // Only whole characters are replaced, so that a damaged map cannot make invalid text.
    const bool whole = match.size > 0 && (match.size == text.size() ||
                                          (static_cast<uint8_t>(text[match.size]) & 0xC0) != 0x80);
    if (whole) {
      out += replacements_.c_str() + match.value;
      text.remove_prefix(match.size);
    } else {
      const size_t size = read_utf8(text).size;
      out += text.substr(0, size);
      text.remove_prefix(size);
    }
  }
  return out;
}

}  // namespace medusa
