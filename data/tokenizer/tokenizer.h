// Text <-> token ids: the interface and its factory.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace medusa {

/// Thread safety: const calls may run at the same time.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Text to ids. Special tokens that stand literally in the text become their ids when
  /// parse_special is true and are ordinary text otherwise (a user's message). Added tokens that
  /// are not special are always found: they are vocabulary, not control. No bos is added.
  virtual std::vector<TokenId> encode(std::string_view text, bool parse_special) const = 0;

  /// The bytes of one token; not always whole UTF-8 characters (see TextStream). Special tokens
  /// give their text. A model may have more rows than there are tokens, and draw one of those: an
  /// id beyond the vocabulary is no text. A negative id is a bug of the caller.
  virtual std::string bytes(TokenId id) const = 0;

  virtual int64_t vocab_size() const = 0;         // at most the model's V
  virtual bool is_special(TokenId id) const = 0;  // a control token, hidden from readers

  virtual std::optional<TokenId> bos() const = 0;
  virtual std::optional<TokenId> eos() const = 0;
  virtual bool adds_bos() const = 0;  // the model expects bos before every text

  /// The id of a token given by its text, e.g. "<|im_end|>".
  virtual std::optional<TokenId> find(std::string_view piece) const = 0;

  /// The model's own chat template (Jinja source); empty if it brings none.
  virtual const std::string& chat_template() const = 0;

  /// Of the vocabulary, merges, special tokens and pre-tokenizer; equal for the same tokenizer read
  /// from GGUF and from tokenizer.json is not promised.
  virtual const std::string& fingerprint() const = 0;

  /// The bytes of several tokens.
  std::string decode(std::span<const TokenId> ids) const {
    std::string text;
    for (const TokenId id : ids) text += bytes(id);
    return text;
  }
};

/// For what implements a tokenizer: its vocabulary cannot be one.
/// @param source  the file;  @param found, expected  parts of the sentence.
/// @throws UserError  always.
[[noreturn]] void refuse_vocabulary(const std::string& source, const std::string& found,
                                    const std::string& expected);

/// Opens the tokenizer of a model: a .gguf file, a folder with tokenizer.gguf (which we write),
/// tokenizer.json, tokenizer.model, or vocab.json and merges.txt, or a file of the first three
/// kinds.
/// @throws UserError  none there, or of a kind we do not run.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& model);

}  // namespace medusa
