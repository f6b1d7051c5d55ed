#include "base/utf8.h"

namespace medusa {
namespace {

constexpr uint32_t kReplacementPoint = 0xFFFD;

/// Bytes a character has that begins with this one, and the range its second byte must lie in:
/// the range is what rules out overlong forms, surrogates and too large values.
struct Lead {
  size_t size = 0;  // 0: no character begins so
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

Utf8Step read_utf8(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const Lead lead = lead_of(at(0));
  if (lead.size == 1) return {Utf8Step::Kind::Character, 1, at(0)};
  if (lead.size == 0) return {Utf8Step::Kind::Invalid, 1, kReplacementPoint};
  uint32_t codepoint = at(0) & (0xFFU >> (lead.size + 1));
  for (size_t i = 1; i < lead.size; ++i) {
    if (i == text.size()) return {Utf8Step::Kind::Incomplete, i, kReplacementPoint};
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xBF;
    if (at(i) < low || at(i) > high) return {Utf8Step::Kind::Invalid, i, kReplacementPoint};
    codepoint = codepoint << 6 | (at(i) & 0x3FU);
  }
  return {Utf8Step::Kind::Character, lead.size, codepoint};
}

Utf8Step read_utf8_backwards(std::string_view text) {
  for (size_t size = 1; size <= 4 && size <= text.size(); ++size) {
    const auto step = read_utf8(text.substr(text.size() - size));
    if (step.kind == Utf8Step::Kind::Character && step.size == size) return step;
  }
  return {Utf8Step::Kind::Invalid, 1, kReplacementPoint};
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto step = read_utf8(text);
    if (step.kind != Utf8Step::Kind::Character) return false;
    text.remove_prefix(step.size);
  }
  return true;
}

bool is_ascii(std::string_view text) {
  unsigned char all = 0;
  for (const char c : text) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

std::string repair_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  while (!text.empty()) {
    const auto step = read_utf8(text);
    repaired += step.kind == Utf8Step::Kind::Character ? text.substr(0, step.size) : kReplacement;
    text.remove_prefix(step.size);
  }
  return repaired;
}

bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

}  // namespace medusa
