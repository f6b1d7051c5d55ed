// Compiles the grammars of requests, one after the other, on a thread of its own: some take long.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>

#include "data/tokenizer/tokenizer.h"
#include "infer/grammar/grammar.h"

namespace medusa {

/// Thread safety: the io thread alone.
class Grammars {
 public:
  /// @param tokenizer  kept by reference.
  /// @param ends       tokens that end an answer.
  Grammars(const Tokenizer& tokenizer, std::vector<TokenId> ends);
  ~Grammars();  // waits for the one that is compiled now

  /// Goes on on the executor that it was called on.
  /// @param field  of the request, for errors.
  /// @throws ApiError  400: it is no grammar of its kind, or this build has no grammar library.
  boost::asio::awaitable<std::shared_ptr<const CompiledGrammar>> compile(GrammarText grammar,
                                                                         std::string field);

 private:
  std::shared_ptr<const CompiledGrammar> compile_now(const GrammarText& grammar);

  const Tokenizer& tokenizer_;
  std::vector<TokenId> ends_;
  boost::asio::thread_pool thread_{1};
  std::unique_ptr<GrammarCompiler> compiler_;  // of the thread alone; made for the first grammar
};

}  // namespace medusa
