// Grammars of requests that come at the same time.
#include "server/request/grammars.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "server/api/api_error.h"
#include "tests/server/server_fixture.h"

namespace medusa {
namespace {

class GrammarsTest : public fixtures::ServerFixture {};

TEST_F(GrammarsTest, MoreThanSixteenThatWaitAreRefused) {
  if (!has_grammar_library()) return;
  boost::asio::io_context io;
  Grammars grammars(*tiny_->loaded().tokenizer, {tiny_->loaded().eos.at(0)});
  int compiled = 0;
  std::string refused;
  const auto ask_for_one = [&]() -> boost::asio::awaitable<void> {
    try {
      GrammarText text;  // g++ 12 destroys lists inside co_await twice
      text.kind = GrammarKind::Regex;
      text.text = "a+";
      std::string field = "medusa.regex";
      co_await grammars.compile(std::move(text), std::move(field));
      ++compiled;
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 503);
      refused = error.what();
    }
  };
  for (int i = 0; i < 17; ++i) boost::asio::co_spawn(io, ask_for_one, boost::asio::detached);
  io.run();
  EXPECT_EQ(compiled, 16);
  EXPECT_EQ(refused,
            "medusa.regex: 16 grammars wait to be compiled, expected fewer; try again later, or "
            "leave it out");
  boost::asio::co_spawn(io, ask_for_one, boost::asio::detached);
  io.restart();
  io.run();
  EXPECT_EQ(compiled, 17) << "none waits any more";
}

/// A character of three bytes that max_tokens cuts is none of the expression's.
TEST_F(GrammarsTest, AnAnswerThatIsCutOffIsTheBeginningOfAValidOne) {
  if (!has_grammar_library()) return;
  const std::string allowed = "日本語";
  for (int tokens = 1; tokens <= 9; ++tokens) {
    const auto answer = complete(
        {{"prompt", "Once"}, {"max_tokens", tokens}, {"medusa", {{"regex", "[日本語]{20}"}}}});
    const std::string text = answer["choices"][0]["text"];
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
    ASSERT_EQ(text.size() % 3, 0U) << text;
    for (size_t at = 0; at < text.size(); at += 3)
      EXPECT_NE(allowed.find(text.substr(at, 3)), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace medusa
