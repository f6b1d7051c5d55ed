// How long a grammar may take, alone and beside others.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <string_view>

#include "base/error.h"
#include "base/random.h"
#include "infer/grammar/grammar.h"
#include "infer/grammar/watched_call.h"
#include "tests/base/error_text.h"
#include "tests/infer/grammar/small_vocabulary.h"

namespace medusa {
namespace {

using GrammarTime = Xgrammar;

TEST_F(GrammarTime, AGrammarThatReadsATextInEverMoreWaysIsEnded) {
  if (!has_grammar_library()) return;
  const auto at = matcher(GrammarKind::Ebnf, "root ::= s\ns ::= s s | s s s | s s s s | [a-z]\n");
  const std::string error = fixtures::error_text([&] {
    for (int i = 0; i < 100000; ++i) {
      ASSERT_TRUE(at->accept('a'));
      allowed(*at);
    }
  });
  EXPECT_TRUE(error.starts_with("the grammar takes ")) << error;
}

TEST_F(GrammarTime, AllTextsOfAGrammarShareItsTime) {
  if (!has_grammar_library()) return;
  const char* rules = "root ::= s\ns ::= s s | s s s | s s s s | [a-z]\n";
  const auto grammar = compile(GrammarKind::Ebnf, rules);
  std::vector<std::unique_ptr<GrammarMatcher>> texts;
  for (int i = 0; i < 2; ++i) texts.push_back(grammar->make_matcher());
  const auto step = [&](GrammarMatcher& at) {
    return fixtures::error_text([&] {
      ASSERT_TRUE(at.accept('a'));
      allowed(at);
    });
  };
  const std::string none = fixtures::error_text([] {});
  bool is_spent = false;
  for (int token = 0; token < 100000 && !is_spent; ++token)
    for (const auto& each : texts) is_spent = is_spent || step(*each) != none;
  EXPECT_TRUE(is_spent);
  for (const auto& each : texts) EXPECT_NE(step(*each), none) << "without another long call";
  EXPECT_NE(step(*grammar->make_matcher()), none);
  EXPECT_NE(fixtures::error_text([&] { compile(GrammarKind::Ebnf, rules); }), none);
  EXPECT_EQ(fixtures::error_text([&] { compile(GrammarKind::Ebnf, "root ::= \"a\""); }), none);
}

GrammarVocabulary with_dashes() {
  GrammarVocabulary out = vocabulary();
  out.bytes.emplace_back(64, '-');
  return out;
}

TEST_F(GrammarTime, ALongTokenIsReadAsItsBytesAreAndIsTakenBackWhole) {
  if (!has_grammar_library()) return;
  compiler_ = make_grammar_compiler(with_dashes());
  const auto dashes = static_cast<TokenId>(vocabulary().bytes.size());
  const auto at = matcher(GrammarKind::Regex, "-{65,70}a");
  EXPECT_TRUE(at->accept(dashes));
  EXPECT_FALSE(at->accept(dashes)) << "the seventh would be one too many";
  EXPECT_FALSE(at->accept('a'));
  EXPECT_TRUE(at->accept('-'));
  EXPECT_TRUE(at->accept('a'));
  at->rollback(3);
  for (int i = 0; i < 66; ++i) ASSERT_TRUE(at->accept('-')) << i;
  at->rollback(65);
  EXPECT_TRUE(at->accept(dashes));
  EXPECT_TRUE(at->accept('a'));
  EXPECT_TRUE(at->accept(kEnd));
  EXPECT_TRUE(at->has_ended());
}

/// What a thread computes until f throws, and the most that one call of step took, seconds.
struct LongestCall {
  double all = 0, most = 0;
};
LongestCall time_until_refused(const std::function<void()>& step, int most_steps) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  LongestCall out;
  for (int i = 0; i < most_steps; ++i) {
    const double began = now();
    const bool refused = fixtures::error_text(step) != fixtures::error_text([] {});
    out.all += now() - began;
    out.most = std::max(out.most, now() - began);
    if (refused) return out;
  }
  ADD_FAILURE() << "not refused in " << most_steps << " steps";
  return out;
}

TEST_F(GrammarTime, NoCallOfALongTokenTakesLongerThanAGrammarMay) {
  if (!has_grammar_library()) return;
  compiler_ = make_grammar_compiler(with_dashes());
  const auto dashes = static_cast<TokenId>(vocabulary().bytes.size());
  const auto at = matcher(GrammarKind::Ebnf, "root ::= s\ns ::= s s | s s s | s s s s | [-]\n");
  const LongestCall found = time_until_refused([&] { at->accept(dashes); }, 100);
  EXPECT_LT(found.most, 1.5);
}

/// And four thousand tokens of several words, which an ambiguous grammar reads in many ways.
GrammarVocabulary with_words() {
  GrammarVocabulary out = with_dashes();
  for (int64_t i = 0; i < 4000; ++i) {
    std::string words;
    for (uint64_t j = 0; j < 10; ++j)
      words +=
          j % 3 == 2 ? ' ' : static_cast<char>('a' + Random(3).bits(RandomUse::Shuffle, i, j) % 26);
    out.bytes.push_back(words);
  }
  return out;
}

TEST_F(GrammarTime, AMaskThatComputesForMinutesIsLeftBehind) {
  if (!has_grammar_library()) return;
  compiler_ = make_grammar_compiler(with_words());
  const auto at =
      matcher(GrammarKind::Ebnf, "root ::= s\ns ::= s s | s s s | [-] | [a-z]+ \" \"?\n");
  std::vector<int32_t> mask((with_words().bytes.size() + 31) / 32);
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(at->accept('-'));
  const std::string error = fixtures::error_text([&] { at->fill_mask(mask); });
  EXPECT_TRUE(error.starts_with("the grammar takes too long for each token ")) << error;
  EXPECT_GE(num_left_behind(), 1);
  EXPECT_TRUE(at->has_ended()) << "and is not touched by two threads";
  at->rollback(3);
  const auto other = compile(GrammarKind::Ebnf, "root ::= [a-z]+");
  other->begin_step();
  const auto plain = other->make_matcher();
  plain->fill_mask(mask);
  EXPECT_TRUE(plain->accept('a')) << "others go on in the next step";
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
}

TEST_F(GrammarTime, AllGrammarsTogetherTakeNotMuchLongerThanOneMay) {
  if (!has_grammar_library()) return;
  compiler_ = make_grammar_compiler(with_dashes());
  const auto dashes = static_cast<TokenId>(vocabulary().bytes.size());
  std::vector<std::unique_ptr<GrammarMatcher>> all;
  for (const char letter : std::string_view("abcdefgh"))
    all.push_back(matcher(
        GrammarKind::Ebnf,
        std::string("root ::= s\ns ::= s s | s s s | s s s s | [-] | \"") + letter + "\"\n"));
  const auto refusals = [&] {
    return std::count_if(all.begin(), all.end(), [&](const auto& each) {
      return fixtures::error_text([&] { each->accept(dashes); }) != fixtures::error_text([] {});
    });
  };
  const LongestCall found = time_until_refused(
      [&] {
        if (refusals() == std::ssize(all)) throw UserError("all of them");
      },
      100);
  EXPECT_LT(found.most, 2);
}

/// Strings in which each letter may belong to any of a hundred alternatives.
std::string many_lengths() {
  std::string schema = R"({"anyOf":[)";
  for (int most = 5; most < 105; ++most)
    schema += std::string(most > 5 ? "," : "") + R"({"type":"string","maxLength":)" +
              std::to_string(most) + "}";
  return schema + "]}";
}

TEST_F(GrammarTime, AStepWaitsHalfASecondForAllGrammarsTogether) {
  if (!has_grammar_library()) return;
  const auto grammar = compile(GrammarKind::JsonSchema, many_lengths());
  std::vector<std::unique_ptr<GrammarMatcher>> texts;
  for (int i = 0; i < 64; ++i) texts.push_back(grammar->make_matcher());
  int refused = 0;
  const auto step = [&] {
    grammar->begin_step();
    for (const auto& each : texts) {
      const std::string error = fixtures::error_text([&] {
        each->accept('"');
        for (int letter = 0; letter < 60; ++letter) each->accept('a');
        each->rollback(61);
      });
      if (error == fixtures::error_text([] {})) continue;
      EXPECT_NE(error.find("together take too long now"), std::string::npos) << error;
      ++refused;
    }
    if (refused > 0) throw UserError("some of them");
  };
  const LongestCall found = time_until_refused(step, 2);
  EXPECT_LT(found.most, 1);
  grammar->begin_step();
  EXPECT_TRUE(grammar->make_matcher()->accept('"')) << "others have the next step";
}

TEST_F(GrammarTime, WhatAllAnswersKeepOfTheirReadingsIsBounded) {
  if (!has_grammar_library()) return;
  const auto grammar = compile(GrammarKind::JsonSchema, many_lengths());
  const auto plain = compile(GrammarKind::Ebnf, "root ::= [a-z]+");
  std::vector<std::unique_ptr<GrammarMatcher>> texts;
  std::string error;
  const auto read = [&] {
    for (int letter = 0; letter < 20; ++letter) {
      grammar->begin_step();
      if (letter == 0) texts.push_back(grammar->make_matcher());
      ASSERT_TRUE(texts.back()->accept(letter == 0 ? '"' : 'a'));
    }
  };
  const LongestCall found = time_until_refused(
      [&] {
        try {
          read();
        } catch (const UserError& refused) {
          error = refused.what();
          throw;
        }
      },
      1000);
  EXPECT_NE(error.find("fill the memory that all requests' grammars share"), std::string::npos)
      << error;
  EXPECT_LT(found.all, 5);
  grammar->begin_step();
  const auto other = plain->make_matcher();
  for (int letter = 0; letter < 100; ++letter)
    EXPECT_TRUE(other->accept('a')) << "it reads one way";
  texts.clear();
  const auto next = grammar->make_matcher();
  grammar->begin_step();
  EXPECT_TRUE(next->accept('"') && next->accept('a')) << "room again";
}

}  // namespace
}  // namespace medusa
