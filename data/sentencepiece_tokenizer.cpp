#include "data/sentencepiece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <queue>

#include "base/check.h"
#include "base/error.h"
#include "base/fingerprint.h"
#include "data/utf8.h"

namespace medusa {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581

[[noreturn]] void fail(const std::string& source, const std::string& found,
                       const std::string& expected) {
  throw UserError(fmt::format("{}: {}, expected {}; convert or download the tokenizer again",
                              source, found, expected));
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += to;
    at = found + from.size();
  }
}

/// 10 for "<0x0A>", -1 for anything else.
int byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  int byte = -1;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16);
  return error == std::errc() && end == piece.data() + 5 && byte >= 0 ? byte : -1;
}

std::string fingerprint_of(const SentencePieceParts& parts) {
  Fingerprint hash;
  hash.add(static_cast<int64_t>(parts.pieces.size()));
  for (size_t id = 0; id < parts.pieces.size(); ++id)
    hash.add(static_cast<int64_t>(parts.pieces[id].size()))
        .add(parts.pieces[id])
        .add(int64_t{std::bit_cast<int32_t>(parts.scores[id])});
  for (const auto& token : parts.added) hash.add(int64_t{token.id}).add(int64_t{token.special});
  for (const TokenId id : parts.byte_pieces) hash.add(int64_t{id});
  hash.add(int64_t{parts.adds_space});
  return hash.digest();
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(SentencePieceParts parts)
    : unknown_(parts.unknown),
      bos_(parts.bos),
      eos_(parts.eos),
      adds_bos_(parts.adds_bos && parts.bos),
      adds_space_(parts.adds_space),
      chat_template_(std::move(parts.chat_template)) {
  if (parts.pieces.empty() || parts.pieces.size() != parts.scores.size())
    fail(parts.source,
         fmt::format("the vocabulary has {} pieces and {} scores", parts.pieces.size(),
                     parts.scores.size()),
         "a score for each piece");
  for (const auto& id : {unknown_, bos_, eos_})
    if (id && (*id < 0 || *id >= static_cast<int64_t>(parts.pieces.size())))
      fail(parts.source, fmt::format("a special token is {}", *id),
           fmt::format("an id below {}", parts.pieces.size()));
  fingerprint_ = fingerprint_of(parts);
  read_pieces(parts);
  added_ = AddedTokens(std::move(parts.added));
}

void SentencePieceTokenizer::read_pieces(const SentencePieceParts& parts) {
  const size_t size = parts.pieces.size();
  pieces_ = parts.pieces;
  scores_ = parts.scores;
  special_.resize(size);
  bytes_.resize(size);
  std::vector<bool> is_normal(size, true);
  for (const auto& token : parts.added) {
    const auto id = static_cast<size_t>(token.id);
    if (id >= size || token.text.empty() || !is_normal[id])
      fail(parts.source, fmt::format("the added token '{}' has the id {}", token.text, token.id),
           fmt::format("a text and an id below {}, each once", size));
    special_[id] = token.special;
    is_normal[id] = false;
  }
  byte_ids_.fill(-1);
  for (const TokenId id : parts.byte_pieces) {
    const auto& piece = pieces_[static_cast<size_t>(id)];
    const int byte = byte_of_piece(piece);
    if (byte < 0 || byte_ids_[static_cast<size_t>(byte)] >= 0)
      fail(parts.source, fmt::format("the byte piece '{}' has the id {}", piece, id),
           "<0x00> to <0xFF>, each once");
    byte_ids_[static_cast<size_t>(byte)] = id;
    bytes_[static_cast<size_t>(id)] = static_cast<char>(byte);
    is_normal[static_cast<size_t>(id)] = false;
  }
  if (!unknown_ && std::count(byte_ids_.begin(), byte_ids_.end(), -1) > 0)
    fail(parts.source, "neither all 256 byte pieces nor an unknown token are there", "one of them");
  for (size_t id = 0; id < size; ++id) {
    if (bytes_[id].empty())
      bytes_[id] = is_normal[id] ? replace_all(pieces_[id], kSpace, " ") : pieces_[id];
    if (!is_normal[id]) continue;
    if (!std::isfinite(scores_[id]))
      fail(parts.source, fmt::format("the score of '{}' is {}", pieces_[id], scores_[id]),
           "a number");
    const auto [there, fresh] = ids_.emplace(pieces_[id], static_cast<TokenId>(id));
    if (!fresh)
      fail(parts.source,
           fmt::format("the piece '{}' has the ids {} and {}", pieces_[id], there->second, id),
           "every piece once");
  }
}

std::vector<TokenId> SentencePieceTokenizer::encode(std::string_view text,
                                                    bool parse_special) const {
  const std::string valid = is_valid_utf8(text) ? std::string(text) : repair_utf8(text);
  std::vector<TokenId> ids;
  bool after_special = true;  // also true at the start
  added_.split(
      valid, parse_special,
      [&](std::string_view gap) {
        const auto marked = replace_all(gap, " ", kSpace);
        encode_gap(adds_space_ && after_special ? fmt::format("{}{}", kSpace, marked) : marked,
                   ids);
        after_special = false;
      },
      [&](TokenId id) {
        ids.push_back(id);
        after_special = special_[static_cast<size_t>(id)];
      });
  return ids;
}

/// A part of the text that is one piece, or a single character, so far.
struct SentencePieceTokenizer::Symbol {
  int64_t begin;     // in the text, bytes
  int64_t size;      // 0: merged into its left neighbour
  int64_t previous;  // index, -1: none
  int64_t next;      // index, -1: none
};

void SentencePieceTokenizer::encode_gap(std::string_view text, std::vector<TokenId>& ids) const {
  std::vector<Symbol> symbols;
  for (size_t at = 0; at < text.size();) {
    const auto step = read_utf8(text.substr(at));
    const auto index = static_cast<int64_t>(symbols.size());
    symbols.push_back(
        {static_cast<int64_t>(at), static_cast<int64_t>(step.size), index - 1, index + 1});
    at += step.size;
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;
  merge(text, symbols);
  for (int64_t i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
    const auto& symbol = symbols[static_cast<size_t>(i)];
    write_symbol(text.substr(static_cast<size_t>(symbol.begin), static_cast<size_t>(symbol.size)),
                 ids);
  }
}

void SentencePieceTokenizer::merge(std::string_view text, std::vector<Symbol>& symbols) const {
  struct Candidate {
    float score;
    int64_t left;   // index of the left symbol
    int64_t right;  // index of the right symbol
    int64_t size;   // of both when they were looked at; another one now: stale
    bool operator<(const Candidate& other) const {  // the highest score first, then the leftmost
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  std::priority_queue<Candidate> queue;
  const auto at = [&](int64_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };
  const auto look_at = [&](int64_t left, int64_t right) {
    if (left < 0 || right < 0) return;
    const int64_t size = at(left).size + at(right).size;
    const auto found =
        ids_.find(text.substr(static_cast<size_t>(at(left).begin), static_cast<size_t>(size)));
    if (found != ids_.end())
      queue.push({scores_[static_cast<size_t>(found->second)], left, right, size});
  };
  for (size_t i = 1; i < symbols.size(); ++i)
    look_at(static_cast<int64_t>(i) - 1, static_cast<int64_t>(i));
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = at(best.left);
    Symbol& right = at(best.right);
    if (left.size == 0 || right.size == 0 || left.size + right.size != best.size) continue;
    left.size = best.size;
    right.size = 0;
    left.next = right.next;
    if (right.next >= 0) at(right.next).previous = best.left;
    look_at(left.previous, best.left);
    look_at(best.left, left.next);
  }
}

void SentencePieceTokenizer::write_symbol(std::string_view piece, std::vector<TokenId>& ids) const {
  if (const auto found = ids_.find(piece); found != ids_.end()) {
    ids.push_back(found->second);
    return;
  }
  const bool has_bytes = std::all_of(piece.begin(), piece.end(), [&](char byte) {
    return byte_ids_[static_cast<uint8_t>(byte)] >= 0;
  });
  if (!has_bytes) {
    ids.push_back(unknown_.value());  // checked when the pieces were read
    return;
  }
  for (const char byte : piece) ids.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
}

std::string SentencePieceTokenizer::bytes(TokenId id) const {
  MEDUSA_ASSERT(id >= 0 && id < vocab_size(), id, vocab_size());
  return bytes_[static_cast<size_t>(id)];
}

bool SentencePieceTokenizer::is_special(TokenId id) const {
  MEDUSA_ASSERT(id >= 0 && id < vocab_size(), id, vocab_size());
  return special_[static_cast<size_t>(id)];
}

std::optional<TokenId> SentencePieceTokenizer::find(std::string_view piece) const {
  if (const auto* token = added_.find(piece)) return token->id;
  if (const auto found = ids_.find(piece); found != ids_.end()) return found->second;
  return std::nullopt;
}

}  // namespace medusa
