#include "server/request/grammars.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/error.h"
#include "server/api/api_error.h"

namespace medusa {
namespace {

namespace asio = boost::asio;

GrammarVocabulary vocabulary_of(const Tokenizer& tokenizer, std::vector<TokenId> ends) {
  GrammarVocabulary out;
  out.ends = std::move(ends);
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id)
    out.bytes.push_back(tokenizer.is_special(id) ? std::string() : tokenizer.bytes(id));
  return out;
}

}  // namespace

Grammars::Grammars(const Tokenizer& tokenizer, std::vector<TokenId> ends)
    : tokenizer_(tokenizer), ends_(std::move(ends)) {}

Grammars::~Grammars() { thread_.join(); }

std::shared_ptr<const CompiledGrammar> Grammars::compile_now(const GrammarText& grammar) {
  if (!compiler_) {
    if (ends_.empty())
      throw UserError(
          "the model has no token that ends a text, expected one, since a grammar ends with it; "
          "leave the grammar out");
    compiler_ = make_grammar_compiler(vocabulary_of(tokenizer_, ends_));
  }
  return compiler_->compile(grammar);
}

asio::awaitable<std::shared_ptr<const CompiledGrammar>> Grammars::compile(GrammarText grammar,
                                                                          std::string field) {
  std::shared_ptr<const CompiledGrammar> out;
  std::string wrong;
  const auto on_thread = [&]() -> asio::awaitable<void> {
    try {
      out = compile_now(grammar);
    } catch (const UserError& error) {
      wrong = error.what();
    }
    co_return;
  };
  co_await asio::co_spawn(thread_, on_thread, asio::use_awaitable);
  if (!out) throw ApiError(400, wrong, std::move(field));
  co_return out;
}

}  // namespace medusa
