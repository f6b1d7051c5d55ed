// Grammars that are tried in another process.
#include "infer/grammar/trial.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/base/error_text.h"

namespace medusa {
namespace {

GrammarVocabulary letters() {
  GrammarVocabulary out;
  for (int byte = 0; byte < 256; ++byte) out.bytes.emplace_back(1, static_cast<char>(byte));
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'a'; b <= 'z'; ++b) out.bytes.push_back({a, b});
  out.bytes.emplace_back();
  out.ends = {static_cast<TokenId>(out.bytes.size()) - 1};
  return out;
}

bool can_limit_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;  // they map terabytes
#else
  return has_grammar_library();
#endif
}

/// Takes time with the square of the number of parts.
GrammarText many_parts(int count) {
  GrammarText out{GrammarKind::Regex, ""};
  for (int i = 0; i < count; ++i) out.text += "(a|b|c|d|e|f)*";
  return out;
}

TEST(GrammarTrial, WhatTakesTooLongIsRefusedAndNothingElse) {
  if (!has_grammar_library()) return;
  const GrammarVocabulary vocabulary = letters();
  GrammarTrial trial(vocabulary, grammar_trial_program(), {.seconds = 1});
  const auto tried = [&](const GrammarText& grammar) {
    return fixtures::error_text([&] { trial.expect_compiles(grammar); });
  };
  EXPECT_EQ(tried({GrammarKind::Regex, "[ab]+"}), "(no error)");
  EXPECT_EQ(tried({GrammarKind::Regex, "("}), "(no error)") << "the compiler itself says it";
  EXPECT_EQ(tried({GrammarKind::JsonSchema, R"({"type": "integer"})"}), "(no error)");
  for (int i = 0; i < 2; ++i)  // the second time it is known
    EXPECT_EQ(tried(many_parts(4000)),
              "the regex takes more than 1 seconds to compile, expected less; write it with fewer "
              "parts that may be left out behind each other, and with smaller counts");
  EXPECT_EQ(tried({GrammarKind::Regex, "[cd]+"}), "(no error)");
}

TEST(GrammarTrial, WhatTakesTooMuchMemoryIsRefused) {
  if (!can_limit_memory()) return;
  const GrammarVocabulary vocabulary = letters();
  GrammarTrial trial(vocabulary, grammar_trial_program(),
                     {.seconds = 20, .bytes = int64_t{80} << 20});
  const GrammarText large{GrammarKind::Regex, std::string(size_t{100} << 20, 'a')};
  EXPECT_EQ(fixtures::error_text([&] { trial.expect_compiles(large); }),
            "the regex takes more than 80 MB to compile, expected less; shorten it");
  EXPECT_NO_THROW(trial.expect_compiles({GrammarKind::Regex, "[ab]+"}));
}

/// The process keeps what it has compiled, for the parts that grammars have in common.
TEST(GrammarTrial, MemoryThatEarlierOnesTookIsNoReasonToRefuse) {
  if (!can_limit_memory()) return;
  const GrammarVocabulary vocabulary = letters();
  GrammarTrial trial(vocabulary, grammar_trial_program(),
                     {.seconds = 20, .bytes = int64_t{40} << 20});
  for (int i = 0; i < 120; ++i) {
    std::string values;
    for (int v = 0; v < 300; ++v)
      values +=
          (v == 0 ? "\"" : ", \"") + std::to_string(int64_t{1000000007} * (300 * i + v)) + "\"";
    ASSERT_NO_THROW(
        trial.expect_compiles({GrammarKind::JsonSchema, R"({"enum": [)" + values + "]}"}))
        << i;
  }
}

TEST(GrammarTrial, AProgramThatIsNotThereIsNamed) {
  const GrammarVocabulary vocabulary = letters();
  GrammarTrial trial(vocabulary, "/nowhere/medusa-grammar");
  EXPECT_EQ(fixtures::error_text([&] {
              trial.expect_compiles({GrammarKind::Regex, "a"});
            }),
            "/nowhere/medusa-grammar: cannot be started (No such file or directory), expected the "
            "program that tries grammars; build or install it again, beside medusa-core");
}

}  // namespace
}  // namespace medusa
