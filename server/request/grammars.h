// Compiles the grammars of requests, one after the other, on a thread of its own: some take long.
// Each is tried in another process before (infer/grammar/trial.h).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <memory>
#include <optional>

#include "data/tokenizer/tokenizer.h"
#include "infer/grammar/grammar.h"
#include "infer/grammar/trial.h"

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
  /// @throws ApiError  400: it is no grammar of its kind, takes too long, or this build has no
  ///                   grammar library; 503: too many wait.
  boost::asio::awaitable<std::shared_ptr<const CompiledGrammar>> compile(GrammarText grammar,
                                                                         std::string field);

 private:
  std::shared_ptr<const CompiledGrammar> compile_now(const GrammarText& grammar);

  const Tokenizer& tokenizer_;
  std::vector<TokenId> ends_;
  int64_t num_waiting_ = 0;
  boost::asio::thread_pool thread_{1};
  // Of the thread alone; made for the first grammar.
  GrammarVocabulary vocabulary_;
  std::unique_ptr<GrammarCompiler> compiler_;
  std::optional<GrammarTrial> trial_;
};

}  // namespace medusa
