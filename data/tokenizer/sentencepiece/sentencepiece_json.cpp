// SentencePiece tokenizers that were written as tokenizer.json: Llama 2, Mistral, Gemma, Phi-3.
#include <algorithm>

#include "base/json_text.h"
#include "data/tokenizer/tokenizer_json.h"

namespace medusa {
namespace {

/// The text that a Replace or Split looks for.
std::string read_text_pattern(const Json& step, const std::string& source) {
  const auto pattern = need_json<Json>(step, "pattern", source);
  if (const auto regex = find_json<std::string>(pattern, "Regex", source))
    refuse_tokenizer(source, fmt::format("a step looks for the pattern '{}'", *regex),
                     "a text (SentencePiece tokenizers look for spaces)");
  auto text = need_json<std::string>(pattern, "String", source);
  if (text.empty()) refuse_tokenizer(source, "a step looks for an empty text", "a text");
  return text;
}

void read_normalizer(const Json& step, TextNormalizer& result, const std::string& source,
                     int depth = 0) {
  if (step.is_null()) return;
  const auto type = need_json<std::string>(step, "type", source);
  if (const auto form = normal_form(type)) {
    result.add(*form);
  } else if (type == "Sequence" && depth == 0) {
    for (const auto& inner : need_json<Json>(step, "normalizers", source))
      read_normalizer(inner, result, source, depth + 1);
  } else if (type == "Prepend") {
    result.add(TextNormalizer::Prefix{need_json<std::string>(step, "prepend", source)});
  } else if (type == "Replace") {
    result.add(TextNormalizer::Replace{read_text_pattern(step, source),
                                       need_json<std::string>(step, "content", source)});
  } else {
    refuse_tokenizer(source, fmt::format("the normalizer is '{}'", type),
                     "Prepend, Replace, NFC, NFD, NFKC, NFKD or a Sequence of these (a model with "
                     "its own character map is read from tokenizer.model)");
  }
}

/// Marks spaces and puts a mark at the beginning: of the text, or of every section.
void read_metaspace(const Json& step, SentencePieceParts& parts) {
  const auto& source = parts.source;
  const auto mark = need_json<std::string>(step, "replacement", source);
  if (mark != kSpaceMark)
    refuse_tokenizer(source, fmt::format("a space is written '{}'", mark), "U+2581");
  parts.marker.add(TextNormalizer::Replace{" ", mark});
  const bool prefix = find_json<bool>(step, "add_prefix_space", source).value_or(true);
  const auto scheme =
      find_json<std::string>(step, "prepend_scheme", source).value_or(prefix ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    refuse_tokenizer(source, fmt::format("'prepend_scheme' is '{}'", scheme),
                     "always, first or never");
  if (scheme != "never")
    parts.marker.add(TextNormalizer::Prefix{
        mark, scheme == "first" ? SectionStart::Text : SectionStart::OrdinaryToken, true});
  parts.splits_words = find_json<bool>(step, "split", source).value_or(true);
}

/// @param spaces_left  false: the normaliser has replaced them all.
void read_pre_tokenizer(const Json& step, bool spaces_left, SentencePieceParts& parts) {
  if (step.is_null()) return;
  const auto type = need_json<std::string>(step, "type", parts.source);
  if (type == "Metaspace") return read_metaspace(step, parts);
  // Gemma's: cuts at spaces when there are none any more.
  if (type == "Split" && !spaces_left && read_text_pattern(step, parts.source) == " ") return;
  refuse_tokenizer(parts.source, fmt::format("the pre-tokenizer is '{}'", type),
                   "none or Metaspace, or ByteLevel for a byte-level model");
}

bool replaces_spaces(const Json& step) {
  if (!step.is_object()) return false;
  if (step.contains("normalizers"))
    return std::any_of(step["normalizers"].begin(), step["normalizers"].end(), replaces_spaces);
  return step.contains("pattern") && step["pattern"] == Json{{"String", " "}} &&
         step.contains("content") && step["content"].is_string() &&
         step["content"].get<std::string>().find(' ') == std::string::npos;
}

/// Merges between the pieces of a vocabulary {text: id}.
void read_bpe(const Json& model, SentencePieceParts& parts) {
  const auto& source = parts.source;
  parts.rule = PieceRule::Merges;
  const auto vocab = need_json<Json>(model, "vocab", source);
  parts.pieces = tokens_by_id(vocab, parts.added, source);
  for (auto& token : parts.added) token.of_model = vocab.contains(token.text);
  for (const auto& merge : need_json<Json>(model, "merges", source))
    parts.merges.push_back(read_merge(merge, source));
  parts.fuse_unknown = find_json<bool>(model, "fuse_unk", source).value_or(false);
  parts.whole_words_first = find_json<bool>(model, "ignore_merges", source).value_or(false);
  if (const auto text = find_json<std::string>(model, "unk_token", source)) {
    parts.unknown = find_token(parts.pieces, *text);
    if (!parts.unknown)
      refuse_tokenizer(source, fmt::format("'unk_token' is '{}'", *text),
                       "a token of the vocabulary");
  }
}

/// Pieces with their scores: a list of [text, score].
void read_unigram(const Json& model, SentencePieceParts& parts) {
  const auto& source = parts.source;
  parts.rule = PieceRule::UnigramDouble;
  for (const auto& entry : need_json<Json>(model, "vocab", source)) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      refuse_tokenizer(source, "an entry of the vocabulary is no pair", "[\"text\", score]");
    parts.pieces.push_back(entry[0].get<std::string>());
    parts.scores.push_back(entry[1].get<double>());
  }
  double lowest = 0;
  for (const double score : parts.scores) lowest = std::min(lowest, score);
  parts.unknown_score = lowest - 10;  // this library counts special tokens too
  for (auto& token : parts.added) {
    if (token.id < static_cast<int64_t>(parts.pieces.size())) continue;
    token.of_model = false;
    if (token.id > static_cast<int64_t>(parts.pieces.size()))
      refuse_tokenizer(source, fmt::format("'{}' has the id {}", token.text, token.id),
                       fmt::format("the id {}", parts.pieces.size()));
    parts.pieces.push_back(token.text);
    parts.scores.push_back(0);
  }
  if (const auto id = find_json<int64_t>(model, "unk_id", source)) {
    if (*id < 0 || *id >= static_cast<int64_t>(parts.pieces.size()))
      refuse_tokenizer(source, fmt::format("'unk_id' is {}", *id), "an id of the vocabulary");
    parts.unknown = static_cast<TokenId>(*id);
  }
}

bool is_byte_piece(const std::string& piece) {
  return piece.size() == 6 && piece.starts_with("<0x") && piece.ends_with('>');
}

}  // namespace

SentencePieceParts sentencepiece_from_json(const Json& root, const std::string& source) {
  SentencePieceParts parts;
  parts.source = source;
  parts.added = read_added_tokens(root, source);
  const auto model = need_json<Json>(root, "model", source);
  const auto type = find_json<std::string>(model, "type", source).value_or("BPE");
  if (type == "BPE")
    read_bpe(model, parts);
  else if (type == "Unigram")
    read_unigram(model, parts);
  else
    refuse_tokenizer(source, fmt::format("the model is '{}'", type), "BPE or Unigram");

  const auto normalizer = find_json<Json>(root, "normalizer", source).value_or(Json());
  parts.normalizer = {};
  read_normalizer(normalizer, parts.normalizer, source);
  const auto pre = find_json<Json>(root, "pre_tokenizer", source).value_or(Json());
  read_pre_tokenizer(pre, !replaces_spaces(normalizer), parts);
  parts.normalizer_text = json_text(normalizer) + json_text(pre);
  for (auto& token : parts.added)
    token.normalized = parts.normalizer.empty()
                           ? ""
                           : parts.normalizer.apply(token.normalized, SectionStart::Text);
  if (find_json<bool>(model, "byte_fallback", source).value_or(false))
    for (size_t id = 0; id < parts.pieces.size(); ++id)
      if (is_byte_piece(parts.pieces[id])) parts.byte_pieces.push_back(static_cast<TokenId>(id));
  read_bos(root, parts.pieces, parts);
  return parts;
}

}  // namespace medusa
