#include "data/tokenizer/sentencepiece/sentencepiece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "base/fingerprint.h"
#include "data/tokenizer/sentencepiece/unigram_model.h"

namespace medusa {
namespace {

constexpr size_t kLongestPiece = 1024;  // bytes; published ones stay below 400
constexpr double kUnknownPenalty = 10;  // SentencePiece's

std::string with_spaces(std::string_view piece) {
  std::string out;
  for (size_t at = 0; at < piece.size();) {
    const bool is_mark = piece.substr(at).starts_with(kSpaceMark);
    out += is_mark ? ' ' : piece[at];
    at += is_mark ? kSpaceMark.size() : 1;
  }
  return out;
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
  const auto add = [&](std::string_view text) {  // with its length: lists cannot run together
    hash.add(static_cast<int64_t>(text.size())).add(text);
  };
  hash.add(static_cast<int64_t>(parts.pieces.size()));
  for (const auto& piece : parts.pieces) add(piece);
  for (const double score : parts.scores) hash.add(std::bit_cast<int64_t>(score));
  hash.add(static_cast<int64_t>(parts.merges.size()));
  for (const auto& [left, right] : parts.merges) {
    add(left);
    add(right);
  }
  for (const auto& token : parts.added) {
    hash.add(int64_t{token.id})
        .add(int64_t{token.special})
        .add(int64_t{token.lstrip})
        .add(int64_t{token.rstrip})
        .add(int64_t{token.single_word});
    add(token.text);
    add(token.normalized);
  }
  for (const TokenId id : parts.byte_pieces) hash.add(int64_t{id});
  for (const TokenId id : parts.unused) hash.add(int64_t{id});
  add(parts.normalizer_text);
  hash.add(static_cast<int64_t>(parts.rule))
      .add(int64_t{parts.fuse_unknown})
      .add(int64_t{parts.splits_words})
      .add(int64_t{parts.whole_words_first});
  return hash.digest();
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(SentencePieceParts parts)
    : splits_words_(parts.splits_words),
      whole_words_first_(parts.whole_words_first),
      bos_(parts.bos),
      eos_(parts.eos),
      adds_bos_(parts.adds_bos && parts.bos),
      chat_template_(std::move(parts.chat_template)) {
  check(parts);
  fingerprint_ = fingerprint_of(parts);
  const auto uses = read_uses(parts);
  read_pieces(parts, uses);
  model_ = make_model(parts);
  sections_ = TextSections(std::move(parts.added), std::move(parts.normalizer));
  marker_ = std::move(parts.marker);
}

void SentencePieceTokenizer::check(const SentencePieceParts& parts) const {
  const size_t size = parts.pieces.size();
  if (size == 0) refuse_vocabulary(parts.source, "the vocabulary has 0 pieces", "at least one");
  if (parts.rule != PieceRule::Merges && parts.scores.size() != size)
    refuse_vocabulary(
        parts.source,
        fmt::format("the vocabulary has {} pieces and {} scores", size, parts.scores.size()),
        "a score for each piece");
  const auto check_id = [&](TokenId id, const char* what) {
    if (id < 0 || static_cast<size_t>(id) >= size)
      refuse_vocabulary(parts.source, fmt::format("{} is {}", what, id),
                        fmt::format("an id below {}", size));
  };
  for (const auto& id : {parts.unknown, parts.bos, parts.eos})
    if (id) check_id(*id, "a special token");
  for (const TokenId id : parts.byte_pieces) check_id(id, "a byte piece");
  for (const TokenId id : parts.unused) check_id(id, "an unused piece");
}

std::vector<SentencePieceTokenizer::Use> SentencePieceTokenizer::read_uses(
    const SentencePieceParts& parts) {
  const size_t size = parts.pieces.size();
  std::vector<Use> uses(size, Use::Normal);
  special_.resize(size);
  for (const auto& token : parts.added) {
    const auto id = static_cast<size_t>(token.id);
    if (token.id < 0 || id >= size || token.text.empty() || uses[id] != Use::Normal)
      refuse_vocabulary(parts.source,
                        fmt::format("the added token '{}' has the id {}", token.text, token.id),
                        fmt::format("a text and an id below {}, each once", size));
    special_[id] = token.special;
    uses[id] = Use::Added;
  }
  unknown_.byte_ids.fill(-1);
  unknown_.token = parts.unknown;
  unknown_.fuse = parts.fuse_unknown;
  for (const TokenId id : parts.byte_pieces) {
    const auto& piece = parts.pieces[static_cast<size_t>(id)];
    const int byte = byte_of_piece(piece);
    if (byte < 0 || unknown_.byte_ids[static_cast<size_t>(byte)] >= 0)
      refuse_vocabulary(parts.source, fmt::format("the byte piece '{}' has the id {}", piece, id),
                        "<0x00> to <0xFF>, each once");
    unknown_.byte_ids[static_cast<size_t>(byte)] = id;
    uses[static_cast<size_t>(id)] = Use::Byte;
  }
  if (!unknown_.token && std::count(unknown_.byte_ids.begin(), unknown_.byte_ids.end(), -1) > 0)
    refuse_vocabulary(parts.source, "neither all 256 byte pieces nor an unknown token are there",
                      "one of them");
  for (const TokenId id : parts.unused) uses[static_cast<size_t>(id)] = Use::Unused;
  if (parts.unknown && uses[static_cast<size_t>(*parts.unknown)] == Use::Normal) {
    uses[static_cast<size_t>(*parts.unknown)] = Use::Unused;  // control, though not listed as such
    special_[static_cast<size_t>(*parts.unknown)] = true;
  }
  return uses;
}

void SentencePieceTokenizer::read_pieces(const SentencePieceParts& parts,
                                         const std::vector<Use>& uses) {
  pieces_ = parts.pieces;
  bytes_.resize(pieces_.size());
  for (size_t id = 0; id < pieces_.size(); ++id) {
    const auto& piece = pieces_[id];
    if (uses[id] == Use::Byte) {
      bytes_[id] = static_cast<char>(byte_of_piece(piece));
      continue;
    }
    bytes_[id] = special_[id] ? piece : with_spaces(piece);
    if (uses[id] != Use::Normal) continue;
    if (piece.size() > kLongestPiece)
      refuse_vocabulary(parts.source,
                        fmt::format("the piece with the id {} has {} bytes", id, piece.size()),
                        fmt::format("at most {}", kLongestPiece));
    if (parts.rule != PieceRule::Merges && !std::isfinite(parts.scores[id]))
      refuse_vocabulary(parts.source,
                        fmt::format("the score of '{}' is {}", piece, parts.scores[id]),
                        "a number");
    const auto [there, fresh] = ids_.emplace(piece, static_cast<TokenId>(id));
    if (!fresh)
      refuse_vocabulary(
          parts.source,
          fmt::format("the piece '{}' has the ids {} and {}", piece, there->second, id),
          "every piece once");
  }
  // An ordinary added token that the model knows may be the result of merges, too; a control token
  // never is.
  for (const auto& token : parts.added)
    if (!token.special && token.of_model && token.text.size() <= kLongestPiece)
      ids_.emplace(pieces_[static_cast<size_t>(token.id)], token.id);
}

std::unique_ptr<PieceModel> SentencePieceTokenizer::make_model(
    const SentencePieceParts& parts) const {
  if (parts.rule == PieceRule::Score)
    return std::make_unique<PieceMerges>(PieceMerges::by_score(ids_, parts.scores));
  if (parts.rule == PieceRule::Merges)
    return std::make_unique<PieceMerges>(PieceMerges::by_list(ids_, parts.merges, parts.source));
  double lowest = 0;
  for (const auto& [piece, id] : ids_)
    lowest = std::min(lowest, parts.scores[static_cast<size_t>(id)]);
  auto model = std::make_unique<UnigramModel>(
      parts.scores, parts.unknown_score.value_or(lowest - kUnknownPenalty),
      parts.rule == PieceRule::Unigram ? UnigramModel::Sums::Float : UnigramModel::Sums::Double);
  for (const auto& [piece, id] : ids_) model->add(piece, id);
  return model;
}

std::vector<TokenId> SentencePieceTokenizer::encode(std::string_view text,
                                                    bool parse_special) const {
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3);
  sections_.split(
      text, parse_special,
      [&](std::string_view section, SectionStart start) {
        if (marker_.empty())
          encode_section(section, ids);
        else
          encode_section(marker_.apply(section, start), ids);
      },
      [&](TokenId id) { ids.push_back(id); });
  return ids;
}

void SentencePieceTokenizer::encode_section(std::string_view text,
                                            std::vector<TokenId>& ids) const {
  if (!splits_words_) return encode_word(text, ids);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(kSpaceMark, begin + 1), text.size());
    encode_word(text.substr(begin, end - begin), ids);
    begin = end;
  }
}

void SentencePieceTokenizer::encode_word(std::string_view word, std::vector<TokenId>& ids) const {
  if (whole_words_first_) {
    if (const auto found = ids_.find(word); found != ids_.end()) {
      ids.push_back(found->second);
      return;
    }
  }
  model_->encode(word, unknown_, ids);
}

std::string SentencePieceTokenizer::bytes(TokenId id) const {
  MEDUSA_ASSERT(id >= 0, id);
  return id < vocab_size() ? bytes_[static_cast<size_t>(id)] : std::string();
}

bool SentencePieceTokenizer::is_special(TokenId id) const {
  MEDUSA_ASSERT(id >= 0, id);
  return id < vocab_size() && special_[static_cast<size_t>(id)];
}

std::optional<TokenId> SentencePieceTokenizer::find(std::string_view piece) const {
  if (const auto* token = sections_.find(piece)) return token->id;
  if (const auto found = ids_.find(piece); found != ids_.end()) return found->second;
  return std::nullopt;
}

}  // namespace medusa
