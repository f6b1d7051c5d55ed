#include "data/tokenizer/bpe_tokenizer.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/fingerprint.h"
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

std::string fingerprint_of(const BpeParts& parts) {
  Fingerprint hash;
  const auto add = [&](std::string_view text) {  // with its length: lists cannot run together
    hash.add(static_cast<int64_t>(text.size())).add(text);
  };
  hash.add(static_cast<int64_t>(parts.tokens.size()));
  for (const auto& token : parts.tokens) add(token);
  hash.add(static_cast<int64_t>(parts.merges.size()));
  for (const auto& [left, right] : parts.merges) {
    add(left);
    add(right);
  }
  for (const auto& token : parts.added)
    hash.add(int64_t{token.id})
        .add(int64_t{token.special})
        .add(int64_t{token.lstrip})
        .add(int64_t{token.rstrip})
        .add(int64_t{token.single_word})
        .add(token.normalized);
  add(parts.pre_tokenizer_text);
  hash.add(static_cast<int64_t>(parts.normalization)).add(int64_t{parts.whole_words_first});
  return hash.digest();
}

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

BpeTokenizer::BpeTokenizer(BpeParts parts)
    : merges_(parts.merges.size()),
      whole_words_first_(parts.whole_words_first),
      bos_(parts.bos),
      eos_(parts.eos),
      adds_bos_(parts.adds_bos),
      chat_template_(std::move(parts.chat_template)) {
  if (parts.tokens.empty() || parts.tokens.size() > (size_t{1} << 30))
    refuse_vocabulary(parts.source,
                      fmt::format("the vocabulary has {} tokens", parts.tokens.size()),
                      "at least one");
  for (const auto& [name, id] : {std::pair{"bos", bos_}, std::pair{"eos", eos_}})
    if (id && (*id < 0 || *id >= static_cast<int64_t>(parts.tokens.size())))
      refuse_vocabulary(parts.source, fmt::format("the {} token is {}", name, *id),
                        fmt::format("an id below {}", parts.tokens.size()));
  if (adds_bos_ && !bos_)
    refuse_vocabulary(parts.source, "a bos token is to be added, but none is named", "one");
  read_tokens(parts);
  read_merges(parts);
  fingerprint_ = fingerprint_of(parts);
  TextNormalizer normalizer;
  if (parts.normalization != Normalization::None) normalizer.add(parts.normalization);
  sections_ = TextSections(std::move(parts.added), std::move(normalizer));
  pre_tokenizer_ = std::move(parts.pre_tokenizer);
}

void BpeTokenizer::read_tokens(const BpeParts& parts) {
  const size_t size = parts.tokens.size();
  std::vector<bool> is_added(size);
  special_.resize(size);
  bytes_.resize(size);
  for (const auto& token : parts.added) {
    const auto id = static_cast<size_t>(token.id);
    if (token.id < 0 || id >= size || is_added[id] || token.text.empty())
      refuse_vocabulary(parts.source,
                        fmt::format("the added token '{}' has the id {}", token.text, token.id),
                        fmt::format("a text and an id below {}, each once", size));
    is_added[id] = true;
    special_[id] = token.special;
    bytes_[id] = token.text;
  }
  byte_ids_.fill(-1);
  ids_.reserve(size);
  for (size_t id = 0; id < size; ++id) {
    if (is_added[id]) continue;
    // A token outside the alphabet can be no result of merges; it stays for decoding.
    bytes_[id] = bytes_of_token(parts.tokens[id]).value_or(parts.tokens[id]);
    const auto [there, fresh] = ids_.emplace(bytes_[id], static_cast<TokenId>(id));
    if (!fresh)
      refuse_vocabulary(
          parts.source,
          fmt::format("the token '{}' has the ids {} and {}", parts.tokens[id], there->second, id),
          "every token once");
    if (bytes_[id].size() == 1)
      byte_ids_[static_cast<uint8_t>(bytes_[id][0])] = static_cast<TokenId>(id);
  }
  // A word may be an added token too and so the result of merges; a control token never is.
  for (const auto& token : parts.added)
    if (!token.special) ids_.emplace(bytes_[static_cast<size_t>(token.id)], token.id);
}

void BpeTokenizer::read_merges(const BpeParts& parts) {
  const auto id_of = [&](const std::string& token) -> TokenId {
    const auto bytes = bytes_of_token(token);
    const auto found = bytes ? ids_.find(*bytes) : ids_.end();
    return found == ids_.end() ? -1 : found->second;
  };
  for (size_t rank = 0; rank < parts.merges.size(); ++rank) {
    const auto& [left, right] = parts.merges[rank];
    const TokenId left_id = id_of(left);
    const TokenId right_id = id_of(right);
    const TokenId merged = id_of(left + right);
    if (left_id < 0 || right_id < 0 || merged < 0)
      refuse_vocabulary(parts.source,
                        fmt::format("the merge '{} {}' is not one of tokens", left, right),
                        "two tokens that make a third");
    if (!merges_.add(left_id, right_id, static_cast<int32_t>(rank), merged))
      refuse_vocabulary(parts.source, fmt::format("the merge '{} {}' is there twice", left, right),
                        "every merge once");
  }
}

std::vector<TokenId> BpeTokenizer::encode(std::string_view text, bool parse_special) const {
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3);
  sections_.split(
      text, parse_special,
      [&](std::string_view section, SectionStart /*start*/) {
        pre_tokenizer_.split(section, [&](std::string_view word) { encode_word(word, ids); });
      },
      [&](TokenId id) { ids.push_back(id); });
  return ids;
}

void BpeTokenizer::encode_word(std::string_view word, std::vector<TokenId>& ids) const {
  if (whole_words_first_) {
    if (const auto found = ids_.find(word); found != ids_.end()) {
      ids.push_back(found->second);
      return;
    }
  }
  const size_t begin = ids.size();
  for (const char byte : word)
    if (const TokenId id = byte_ids_[static_cast<uint8_t>(byte)]; id >= 0) ids.push_back(id);
  merges_.apply(ids, begin);
}

std::string BpeTokenizer::bytes(TokenId id) const {
  MEDUSA_ASSERT(id >= 0, id);
  return id < vocab_size() ? bytes_[static_cast<size_t>(id)] : std::string();
}

bool BpeTokenizer::is_special(TokenId id) const {
  MEDUSA_ASSERT(id >= 0, id);
  return id < vocab_size() && special_[static_cast<size_t>(id)];
}

std::optional<TokenId> BpeTokenizer::find(std::string_view piece) const {
  if (const auto* token = sections_.find(piece)) return token->id;
  if (const auto found = ids_.find(piece); found != ids_.end()) return found->second;
  return std::nullopt;
}

}  // namespace medusa
