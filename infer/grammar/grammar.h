// Texts that follow a grammar: which tokens may come next. Interfaces; xgrammar.cpp is behind them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/token.h"

namespace medusa {

enum class GrammarKind {
  JsonSchema,  // the texts are JSON
  Regex,
  Ebnf,           // rules in GBNF's form, the first of them `root`
  StructuralTag,  // JSON in xgrammar's form: schemas between marks, with or without other text
};

template <>
struct EnumNames<GrammarKind> {
  static constexpr auto values = std::to_array<std::pair<const char*, GrammarKind>>({
      {"json_schema", GrammarKind::JsonSchema},
      {"regex", GrammarKind::Regex},
      {"grammar", GrammarKind::Ebnf},
      {"structural_tag", GrammarKind::StructuralTag},
  });
};

/// A grammar as a client writes it.
struct GrammarText {
  GrammarKind kind = GrammarKind::JsonSchema;
  std::string text;  // the schema, expression, rules or tags
};

/// What the tokens of a model stand for.
struct GrammarVocabulary {
  std::vector<std::string>
      bytes;                  // [V] of each token; empty: it stands for no text, and never comes
  std::vector<TokenId> ends;  // tokens that end a text, at least one
};

/// Where a text stands in its grammar.
///
/// Thread safety: none.
class GrammarMatcher {
 public:
  virtual ~GrammarMatcher() = default;

  /// The text has grown by this token. @returns  false, and nothing has changed, where the grammar
  /// has no place for it.
  virtual bool accept(TokenId token) = 0;
  /// Takes the last tokens back.
  virtual void rollback(int32_t num_tokens) = 0;
  /// An end token has come: nothing follows.
  virtual bool has_ended() const = 0;
  /// Which tokens may come next. Not to be asked once the text has ended.
  /// @param mask  [(V + 31) / 32] bit t % 32 of word t / 32 is set where token t may come.
  virtual void fill_mask(std::span<int32_t> mask) = 0;
  /// Tokens that spell the beginning of the text that must come next, as long ones as there are;
  /// none where several texts may, as far as one token tells. The text may come in other tokens.
  virtual std::vector<TokenId> forced_tokens(int32_t most) = 0;
};

/// A grammar, ready for a vocabulary.
///
/// Thread safety: any thread may call anything.
class CompiledGrammar {
 public:
  virtual ~CompiledGrammar() = default;
  /// At the beginning of a text.
  virtual std::unique_ptr<GrammarMatcher> make_matcher() const = 0;
  virtual int64_t vocab_size() const = 0;
  /// The decoder begins a step, in which all grammars of a compiler may take a quarter of
  /// a second together.
  virtual void begin_step() const {}
};

/// Compiles grammars, and keeps some of those that it has compiled.
///
/// Thread safety: none.
class GrammarCompiler {
 public:
  virtual ~GrammarCompiler() = default;
  /// @throws UserError  the text is no grammar of its kind.
  virtual std::shared_ptr<const CompiledGrammar> compile(const GrammarText& grammar) = 0;
};

/// Says whether this build has a grammar library.
bool has_grammar_library();

/// @throws UserError  this build has none, or it cannot be loaded.
std::unique_ptr<GrammarCompiler> make_grammar_compiler(const GrammarVocabulary& vocabulary);

}  // namespace medusa
