// What a Hugging Face folder says of its tokenizer beside the vocabulary.
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer/added_tokens.h"

namespace medusa {

/// tokenizer_config.json, chat_template.jinja and added_tokens.json, where they are.
struct TokenizerConfig {
  std::string source;              // of tokenizer_config.json, for messages
  std::optional<std::string> bos;  // a token's text
  std::optional<std::string> eos;
  std::optional<bool> adds_bos;
  std::optional<std::string> family;  // tokenizer_class
  std::string chat_template;
  std::vector<AddedToken> added;     // by id
  std::vector<std::string> special;  // texts of bos, eos, padding and additional special tokens
};

/// @throws UserError  a file is not JSON, or a value has another type than it should.
TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder);

/// The id of a token; nullopt: it is none of them.
std::optional<TokenId> find_token(const std::vector<std::string>& tokens, const std::string& text);

/// The id of the token that config names as "bos_token" or "eos_token".
/// @throws UserError  it is not among tokens.
TokenId configured_token(const TokenizerConfig& config, const char* key, const std::string& text,
                         const std::vector<std::string>& tokens);

/// Writes what config says over what the vocabulary's own file says.
/// @tparam Parts  BpeParts or SentencePieceParts.
template <typename Parts>
void apply_config(const TokenizerConfig& config, const std::vector<std::string>& tokens,
                  Parts& parts) {
  if (config.bos) parts.bos = configured_token(config, "bos_token", *config.bos, tokens);
  if (config.eos) parts.eos = configured_token(config, "eos_token", *config.eos, tokens);
  parts.adds_bos = parts.bos && config.adds_bos.value_or(parts.adds_bos);
  if (!config.chat_template.empty()) parts.chat_template = config.chat_template;
}

}  // namespace medusa
