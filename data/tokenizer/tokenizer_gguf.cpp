// Tokenizers from GGUF metadata: the keys tokenizer.ggml.*.
#include <fmt/format.h>

#include "base/error.h"
#include "base/formats/gguf_file.h"
#include "data/tokenizer/tokenizer_files.h"

namespace medusa {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kTypes = "tokenizer.ggml.token_type";

/// The values of tokenizer.ggml.token_type.
enum TokenType : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

std::optional<TokenId> token_id(const GgufFile& file, const char* key, size_t vocab_size) {
  const auto id = file.find<int64_t>(key);
  if (!id) return std::nullopt;
  if (*id < 0 || *id >= static_cast<int64_t>(vocab_size))
    throw UserError(fmt::format(
        "{}: the metadata key '{}' is {}, expected an id below {}; convert or download the model "
        "again",
        file.path().string(), key, *id, vocab_size));
  return static_cast<TokenId>(*id);
}

/// The bos or eos token of a file of the Llama family that does not say which: the one that all of
/// them have there, as llama.cpp assumes, too.
std::optional<TokenId> usual_id(const std::vector<int64_t>& types, TokenId id) {
  const auto at = static_cast<size_t>(id);
  if (at < types.size() && types[at] == kControl) return id;
  return std::nullopt;
}

/// Whether prompts begin with the bos token.
/// @param otherwise  what a file means that does not say.
bool adds_bos(const GgufFile& file, bool has_bos, bool otherwise) {
  const char* key = "tokenizer.ggml.add_bos_token";
  const auto says = file.find<bool>(key);
  if (says.value_or(false) && !has_bos)
    throw UserError(fmt::format(
        "{}: the metadata key '{}' is true, found no 'tokenizer.ggml.bos_token_id', expected the "
        "token that prompts begin with; convert or download the model again",
        file.path().string(), key));
  return says.value_or(otherwise);
}

/// Throws unless an array beside the tokens has one element for each.
void check_length(const GgufFile& file, const char* key, size_t found, size_t expected) {
  if (found == expected) return;
  throw UserError(fmt::format(
      "{}: the metadata key '{}' has {} elements, expected {} as '{}' has; convert or download the "
      "model again",
      file.path().string(), key, found, expected, kTokens));
}

/// One type per token; all normal if the file does not say.
std::vector<int64_t> token_types(const GgufFile& file, size_t vocab_size) {
  const auto types = file.find<std::vector<int64_t>>(kTypes);
  if (!types) return std::vector<int64_t>(vocab_size, kNormal);
  check_length(file, kTypes, types->size(), vocab_size);
  return *types;
}

std::vector<AddedToken> added_tokens(const std::vector<std::string>& tokens,
                                     const std::vector<int64_t>& types) {
  std::vector<AddedToken> added;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const bool special = types[id] == kControl || types[id] == kUnknown;
    if ((special || types[id] == kUserDefined) && !tokens[id].empty())
      added.push_back({static_cast<TokenId>(id), tokens[id], special});
  }
  return added;
}

TextNormalizer gguf_normalizer(bool adds_space, bool trims,
                               const std::optional<std::vector<int64_t>>& character_map,
                               const std::string& source) {
  TextNormalizer normalizer;
  if (character_map)
    normalizer.add(CharacterMap(std::string(character_map->begin(), character_map->end()), source));
  if (trims) normalizer.add(TextNormalizer::TrimSpaces{});
  if (adds_space)
    normalizer.add(TextNormalizer::Prefix{std::string(kSpaceMark), SectionStart::SpecialToken});
  normalizer.add(TextNormalizer::Replace{" ", std::string(kSpaceMark)});
  return normalizer;
}

/// Families whose GGUF files leave to be known that a word of the vocabulary is taken whole,
/// whatever the merges say, and that prompts begin with the bos token: Llama 3's, and Mistral's
/// Tekken.
bool takes_whole_words(const std::string& pre) {
  return pre == "llama-bpe" || pre == "llama3" || pre == "llama-v3" || pre == "falcon3" ||
         pre == "tekken";
}

}  // namespace

BpeParts bpe_from_gguf(const GgufFile& file) {
  BpeParts parts;
  parts.source = file.path().string();
  parts.tokens = file.required<std::vector<std::string>>(kTokens);
  parts.added = added_tokens(parts.tokens, token_types(file, parts.tokens.size()));
  for (auto& merge : file.required<std::vector<std::string>>("tokenizer.ggml.merges")) {
    const size_t space = merge.find(' ', 1);  // tokens have no space: it is written Ġ
    if (space == std::string::npos)
      throw UserError(fmt::format(
          "{}: the merge '{}' is one word, expected two with a space between them; convert or "
          "download the model again",
          parts.source, merge));
    parts.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  const auto pre = file.find<std::string>("tokenizer.ggml.pre").value_or("default");
  parts.pre_tokenizer = PreTokenizer::named(pre, parts.source);
  parts.pre_tokenizer_text = pre;
  parts.whole_words_first = takes_whole_words(pre);
  parts.bos = token_id(file, "tokenizer.ggml.bos_token_id", parts.tokens.size());
  parts.eos = token_id(file, "tokenizer.ggml.eos_token_id", parts.tokens.size());
  parts.adds_bos = adds_bos(file, parts.bos.has_value(), takes_whole_words(pre));
  parts.chat_template = file.find<std::string>("tokenizer.chat_template").value_or("");
  return parts;
}

SentencePieceParts sentencepiece_from_gguf(const GgufFile& file) {
  SentencePieceParts parts;
  parts.source = file.path().string();
  const bool unigram = file.required<std::string>("tokenizer.ggml.model") == "t5";
  parts.rule = unigram ? PieceRule::Unigram : PieceRule::Score;
  parts.pieces = file.required<std::vector<std::string>>(kTokens);
  const size_t size = parts.pieces.size();
  parts.scores = file.required<std::vector<double>>("tokenizer.ggml.scores");
  check_length(file, "tokenizer.ggml.scores", parts.scores.size(), size);
  const auto types = token_types(file, size);
  parts.added = added_tokens(parts.pieces, types);
  for (size_t id = 0; id < size; ++id) {
    if (types[id] == kByte) parts.byte_pieces.push_back(static_cast<TokenId>(id));
    if (types[id] == kUnused && unigram) parts.unused.push_back(static_cast<TokenId>(id));
  }
  parts.unknown = token_id(file, "tokenizer.ggml.unknown_token_id", size);
  parts.bos = token_id(file, "tokenizer.ggml.bos_token_id", size);
  parts.eos = token_id(file, "tokenizer.ggml.eos_token_id", size);
  if (!unigram && !parts.bos) parts.bos = usual_id(types, 1);
  if (!unigram && !parts.eos) parts.eos = usual_id(types, 2);
  // These two are left out by files whose family has them set.
  parts.adds_bos = adds_bos(file, parts.bos.has_value(), !unigram);
  const bool adds_space = file.find<bool>("tokenizer.ggml.add_space_prefix").value_or(true);
  const bool trims = file.find<bool>("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
  const auto map = file.find<std::vector<int64_t>>("tokenizer.ggml.precompiled_charsmap");
  parts.normalizer = gguf_normalizer(adds_space, trims, map, parts.source);
  parts.normalizer_text = fmt::format("{}{}{}", adds_space, trims, map ? map->size() : 0);
  parts.chat_template = file.find<std::string>("tokenizer.chat_template").value_or("");
  return parts;
}

}  // namespace medusa
