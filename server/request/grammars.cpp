#include "server/request/grammars.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/error.h"
#include "server/api/api_error.h"

namespace medusa {
namespace {

namespace asio = boost::asio;

constexpr int64_t kMostWaiting = 16;

GrammarVocabulary vocabulary_of(const Tokenizer& tokenizer, std::vector<TokenId> ends) {
  GrammarVocabulary out;
  out.ends = std::move(ends);
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id)
    out.bytes.push_back(tokenizer.is_special(id) ? std::string() : tokenizer.bytes(id));
  return out;
}

/// Counts one more while it lives.
class Waiting {
 public:
  explicit Waiting(int64_t& count) : count_(count) { ++count_; }
  Waiting(const Waiting&) = delete;
  ~Waiting() { --count_; }

 private:
  int64_t& count_;
};

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
    vocabulary_ = vocabulary_of(tokenizer_, ends_);
    compiler_ = make_grammar_compiler(vocabulary_);
    trial_.emplace(vocabulary_, grammar_trial_program());
  }
  trial_->expect_compiles(grammar);
  return compiler_->compile(grammar);
}

asio::awaitable<std::shared_ptr<const CompiledGrammar>> Grammars::compile(GrammarText grammar,
                                                                          std::string field) {
  if (num_waiting_ == kMostWaiting)
    throw ApiError(503,
                   fmt::format("{}: {} grammars wait to be compiled, expected fewer; try again "
                               "later, or leave it out",
                               field, num_waiting_),
                   field);
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
  const Waiting waiting(num_waiting_);
  co_await asio::co_spawn(thread_, on_thread, asio::use_awaitable);
  if (!out) throw ApiError(400, wrong, std::move(field));
  co_return out;
}

}  // namespace medusa
