// What both kinds of tokenizer.json have in common. For .cpp files only: it includes the JSON
// library.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/json.h"
#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/sentencepiece/sentencepiece_tokenizer.h"
#include "data/tokenizer/tokenizer_config.h"

namespace medusa {

/// @throws UserError  always.
[[noreturn]] void refuse_tokenizer(const std::string& source, const std::string& found,
                                   const std::string& expected);

/// @throws UserError  an id below 0 or far too large, or no text.
AddedToken read_added_token(const Json& entry, int64_t id, const std::string& source);

/// The list "added_tokens" of a tokenizer.json.
std::vector<AddedToken> read_added_tokens(const Json& root, const std::string& source);

/// The tokens of a vocabulary {text: id} and added ones, by id.
/// @throws UserError  not every id below V is there once.
std::vector<std::string> tokens_by_id(const Json& vocab, const std::vector<AddedToken>& added,
                                      const std::string& source);

/// "a b" or ["a", "b"].
std::pair<std::string, std::string> read_merge(const Json& merge, const std::string& source);

/// The special token that the file's post-processor puts before every text.
std::optional<std::string> first_token(const Json& root, const std::string& source);

/// Makes that token the bos.
/// @tparam Parts  BpeParts or SentencePieceParts.
template <typename Parts>
void read_bos(const Json& root, const std::vector<std::string>& tokens, Parts& parts) {
  const auto first = first_token(root, parts.source);
  parts.adds_bos = first.has_value();
  if (first) parts.bos = find_token(tokens, *first);
}

/// A step of the normaliser that is a Unicode normal form, by its type; nullopt: another step.
std::optional<Normalization> normal_form(const std::string& type);

BpeParts byte_level_from_json(const Json& root, const std::string& source);
SentencePieceParts sentencepiece_from_json(const Json& root, const std::string& source);

}  // namespace medusa
