// SentencePiece tokenizers from tokenizer.model: a protobuf message with the pieces, how the model
// was trained and how text is normalized.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "data/tokenizer/sentencepiece/protobuf_reader.h"
#include "data/tokenizer/tokenizer_config.h"
#include "data/tokenizer/tokenizer_files.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

enum class PieceType : int64_t { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };

struct Piece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::Normal;
};

/// What of the message decides how text is cut; the values are the format's defaults.
struct ModelMessage {
  std::vector<Piece> pieces;
  int64_t model_type = 1;  // 1 unigram, 2 BPE
  bool space_behind = false;
  int64_t bos = 1;
  int64_t eos = 2;
  std::string character_map;
  bool adds_space = true;
  bool trims_spaces = true;
  bool marks_spaces = true;
};

[[noreturn]] void refuse(const std::string& source, const std::string& found,
                         const std::string& expected) {
  throw UserError(
      fmt::format("{}: {}, expected {}; use the tokenizer.json or GGUF file of the model", source,
                  found, expected));
}

Piece read_piece(std::string_view bytes, const std::string& source) {
  Piece piece;
  for (ProtobufReader field(bytes, source); field.next();) {
    if (field.field() == 1) piece.text = field.bytes();
    if (field.field() == 2) piece.score = field.number();
    if (field.field() == 3) piece.type = static_cast<PieceType>(field.integer());
  }
  if (piece.type < PieceType::Normal || piece.type > PieceType::Byte)
    refuse(
        source,
        fmt::format("the piece '{}' is of type {}", piece.text, static_cast<int64_t>(piece.type)),
        "1 to 6");
  return piece;
}

void read_trainer(std::string_view bytes, const std::string& source, ModelMessage& message) {
  for (ProtobufReader field(bytes, source); field.next();) {
    if (field.field() == 3) message.model_type = field.integer();
    if (field.field() == 24) message.space_behind = field.integer() != 0;
    if (field.field() == 41) message.bos = field.integer();
    if (field.field() == 42) message.eos = field.integer();
  }
}

void read_normalizer(std::string_view bytes, const std::string& source, ModelMessage& message) {
  for (ProtobufReader field(bytes, source); field.next();) {
    if (field.field() == 2) message.character_map = field.bytes();
    if (field.field() == 3) message.adds_space = field.integer() != 0;
    if (field.field() == 4) message.trims_spaces = field.integer() != 0;
    if (field.field() == 5) message.marks_spaces = field.integer() != 0;
  }
}

ModelMessage read_message(std::string_view bytes, const std::string& source) {
  ModelMessage message;
  for (ProtobufReader field(bytes, source); field.next();) {
    if (field.field() == 1) message.pieces.push_back(read_piece(field.bytes(), source));
    if (field.field() == 2) read_trainer(field.bytes(), source, message);
    if (field.field() == 3) read_normalizer(field.bytes(), source, message);
  }
  if (message.model_type != 1 && message.model_type != 2)
    refuse(source, fmt::format("the model is of type {}", message.model_type),
           "1 (unigram) or 2 (BPE)");
  if (message.space_behind) refuse(source, "spaces belong to the word before them", "behind them");
  return message;
}

/// BPE may go through an unused piece on the way to another one, which we do not; most have none
/// that two other pieces make.
void check_unused(const std::vector<Piece>& pieces, const std::string& source) {
  std::set<std::string_view> texts;
  for (const auto& piece : pieces) texts.insert(piece.text);
  for (const auto& piece : pieces) {
    if (piece.type != PieceType::Unused || piece.text.size() > 1024) continue;
    const std::string_view text = piece.text;
    for (size_t cut = 1; cut < text.size(); ++cut)
      if (texts.contains(text.substr(0, cut)) && texts.contains(text.substr(cut)))
        refuse(source, fmt::format("the piece '{}' is unused and still a step of merging", text),
               "unused pieces that no merge makes");
  }
}

TextNormalizer make_normalizer(const ModelMessage& message, const std::string& source) {
  const std::string space(message.marks_spaces ? kSpaceMark : " ");
  TextNormalizer normalizer;
  if (!message.character_map.empty()) normalizer.add(CharacterMap(message.character_map, source));
  if (message.trims_spaces) normalizer.add(TextNormalizer::TrimSpaces{});
  if (message.adds_space) normalizer.add(TextNormalizer::Prefix{space, SectionStart::SpecialToken});
  if (message.marks_spaces) normalizer.add(TextNormalizer::Replace{" ", space});
  return normalizer;
}

void add_pieces(std::vector<Piece> pieces, SentencePieceParts& parts) {
  const bool unigram = parts.rule == PieceRule::Unigram;
  float highest = pieces.empty() ? 0 : -1e30F;
  for (const auto& piece : pieces)
    if (piece.type == PieceType::Normal) highest = std::max(highest, piece.score);
  for (auto& piece : pieces) {
    const auto id = static_cast<TokenId>(parts.pieces.size());
    double score = piece.score;
    const bool special = piece.type == PieceType::Control || piece.type == PieceType::Unknown;
    if (piece.type == PieceType::UserDefined && unigram) {
      // Better than any other cut of the same text. The product is rounded as in SentencePiece.
      score = double{static_cast<float>(piece.text.size()) * highest} - 0.1;
    } else if (special || piece.type == PieceType::UserDefined) {
      AddedToken token;
      token.id = id;
      token.text = piece.text;
      token.special = special;
      if (!special) token.normalized = piece.text;
      parts.added.push_back(std::move(token));
    }
    if (piece.type == PieceType::Unknown) parts.unknown = id;
    if (piece.type == PieceType::Byte) parts.byte_pieces.push_back(id);
    if (piece.type == PieceType::Unused) parts.unused.push_back(id);
    parts.pieces.push_back(std::move(piece.text));
    parts.scores.push_back(score);
  }
}

/// Tokens that the folder adds to the model's own.
void add_tokens(const std::vector<AddedToken>& added, SentencePieceParts& parts) {
  for (AddedToken token : added) {
    const auto size = static_cast<int64_t>(parts.pieces.size());
    token.of_model = token.id < size;
    token.normalized.clear();
    if (token.id < size) {
      const auto same = std::find_if(parts.added.begin(), parts.added.end(),
                                     [&](const AddedToken& each) { return each.id == token.id; });
      if (same != parts.added.end()) parts.added.erase(same);
    } else if (token.id == size) {
      parts.pieces.push_back(token.text);
      parts.scores.push_back(0);
    } else {
      refuse(parts.source, fmt::format("the added token '{}' has the id {}", token.text, token.id),
             fmt::format("the id {}", size));
    }
    parts.added.push_back(std::move(token));
  }
}

}  // namespace

SentencePieceParts sentencepiece_from_model(const fs::path& file) {
  SentencePieceParts parts;
  parts.source = file.string();
  const std::string bytes = read_file(file);
  auto message = read_message(bytes, parts.source);
  parts.rule = message.model_type == 1 ? PieceRule::Unigram : PieceRule::Score;
  if (parts.rule == PieceRule::Score) check_unused(message.pieces, parts.source);
  parts.normalizer = make_normalizer(message, parts.source);
  parts.normalizer_text = fmt::format("{}{}{}{}", message.adds_space, message.trims_spaces,
                                      message.marks_spaces, message.character_map);
  const auto control = [&](int64_t id) -> std::optional<TokenId> {
    if (id < 0 || id >= static_cast<int64_t>(message.pieces.size())) return std::nullopt;
    if (message.pieces[static_cast<size_t>(id)].type != PieceType::Control) return std::nullopt;
    return static_cast<TokenId>(id);
  };
  parts.bos = control(message.bos);
  parts.eos = control(message.eos);
  add_pieces(std::move(message.pieces), parts);
  const auto config = read_tokenizer_config(file.parent_path());
  add_tokens(config.added, parts);
  apply_config(config, parts.pieces, parts);
  return parts;
}

}  // namespace medusa
