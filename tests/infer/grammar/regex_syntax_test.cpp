// Expressions that a grammar follows to the letter, and those that are refused by name.
#include "infer/grammar/regex_syntax.h"

#include <gtest/gtest.h>

#include "tests/base/error_text.h"

namespace medusa {
namespace {

std::string regex_refusal(const std::string& expression) {
  return fixtures::error_text([&] { supported_regex(expression); });
}

std::string json_refusal(const std::string& expression) {
  return fixtures::error_text([&] { regex_of_json_string(expression); });
}

TEST(RegexSyntax, WhatAGrammarFollowsPasses) {
  for (const char* each : {"",
                           "a",
                           "^a$",
                           "^a|b$",
                           "(^a|^b)c$",
                           "a+b*c?",
                           "a+?b",
                           "a{2}",
                           "a{2,}",
                           "a{0,3}?",
                           "(?:a|b)c",
                           "(?<name>a)b",
                           "[a-z_]",
                           "[^a-z]",
                           "\\d\\D\\w\\W\\s\\S",
                           "\\.\\/\\-\\$",
                           "\\x41\\u00e9",
                           "a|",
                           "[\\d\\-x]",
                           "\\n\\t",
                           "x[$^|]y",
                           "ä",
                           "[😀-😂]"}) {
    EXPECT_EQ(regex_refusal(each), "(no error)") << each;
  }
}

TEST(RegexSyntax, WhatTheLibraryWouldLeaveOutIsRefused) {
  for (const char* each : {"(?=a)b",
                           "(?!a)b",
                           "(?<=a)b",
                           "(?<!a)b",
                           "(?i)a",
                           "(?P<n>a)",
                           "(?#c)a",
                           "(?<n",
                           "\\bfoo",
                           "foo\\B",
                           "(a)\\1",
                           "\\k<n>",
                           "\\p{L}",
                           "\\A",
                           "\\z",
                           "\\cA",
                           "\\0",
                           "\\x4",
                           "\\x{61}",
                           "\\u12",
                           "\\u{1F600}",
                           "\\uD83D\\uDE00",
                           "a^b",
                           "x(^a|b)",
                           "a$b",
                           "(a$|b)c",
                           "a++",
                           "a**",
                           "a{1}{2}",
                           "*a",
                           "|*",
                           "(*)",
                           "a{,3}",
                           "a{2,1}",
                           "a{2147483648}",
                           "a{1,2147483648}",
                           "a{x}",
                           "a{",
                           "[]",
                           "[^]",
                           "[a",
                           "(a)b)",
                           "\\",
                           "[\\b]",
                           "^*"})
    EXPECT_NE(regex_refusal(each), "(no error)") << each;
}

TEST(RegexSyntax, TheRefusalHasFourParts) {
  EXPECT_EQ(regex_refusal("ab(?=c)"),
            "the regular expression has \"(?=\" at character 3, expected what a grammar can hold; "
            "leave lookahead, lookbehind and flags out");
  EXPECT_EQ(regex_refusal("a{3,2}"),
            "the regular expression has \"{3,2}\" at character 2, expected what a grammar can "
            "hold; write counts from 0 to 1000000, the smaller one first");
}

TEST(RegexSyntax, InAStringOfJsonWhatJsonEscapesIsRefused) {
  for (const char* each :
       {"\"", "\\\"", "\\\\", "\n", "\\n", "\\x0a", "\\u0022", "[\"]", "[\\n]"}) {
    EXPECT_NE(json_refusal(each), "(no error)") << each;
    EXPECT_EQ(regex_refusal(each), "(no error)") << each;
  }
  for (const char* each : {"[^\"]*", "[^\\\\]", "\\s", ".", "\\D", "[\"a]"})
    EXPECT_EQ(json_refusal(each), "(no error)") << each;
}

TEST(RegexSyntax, InAStringOfJsonClassesLeaveOutWhatJsonEscapes) {
  EXPECT_EQ(regex_of_json_string("^(?:ab|\\.)+?$"), "é{0}((ab|[\\u{2e}])+)");
  EXPECT_EQ(regex_of_json_string("[ -~]{2}"),
            "é{0}([\\u{20}-\\u{21}\\u{23}-\\u{5b}\\u{5d}-\\u{7e}]{2})");
  EXPECT_EQ(regex_of_json_string("[^!-~]"),
            "é{0}([\\u{20}\\u{7f}-\\u{d7ff}\\u{e000}-\\u{10ffff}])");
  EXPECT_EQ(regex_of_json_string("[^-a]"),
            "é{0}([\\u{20}-\\u{21}\\u{23}-\\u{2c}\\u{2e}-\\u{5b}"
            "\\u{5d}-\\u{60}\\u{62}-\\u{d7ff}\\u{e000}-"
            "\\u{10ffff}])");
  EXPECT_EQ(regex_of_json_string("\\^"), "é{0}(\\^)");
  EXPECT_EQ(regex_of_json_string("[\\^-a]"), "é{0}([\\u{5f}-\\u{61}\\u{5e}])");
  EXPECT_EQ(regex_of_json_string("ä"), "é{0}([\\u{e4}])");
}

}  // namespace
}  // namespace medusa
