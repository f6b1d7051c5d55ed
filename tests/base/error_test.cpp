#include "base/error.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace medusa {
namespace {

TEST(UserError, ControlBytesOfAQuotedNameDoNotReachTheTerminal) {
  const std::string name("a\0b\r\x1b[2J\x7f", 9);
  EXPECT_STREQ(UserError("f: has '" + name + "'; remove it").what(),
               R"(f: has 'a\x00b\x0d\x1b[2J\x7f'; remove it)");
}

TEST(UserError, NeitherDoC1AndTurnedText) {
  EXPECT_STREQ(UserError("f: has '\xC2\x9B\x9B\u202E'").what(), R"(f: has '\u009b\x9b\u202e')");
}

TEST(UserError, KeepsLinesTabsAndOtherScripts) {
  const char* text = "expected one of\n\tStraße, 東京";
  EXPECT_STREQ(UserError(text).what(), text);
}

TEST(UserError, AValueAsLongAsABookIsShortened) {
  std::string book;
  for (int i = 0; i < 100000; ++i) book += "東";
  const std::string text = UserError("a.gguf: the tokenizer is '" + book + "'; use another").what();
  EXPECT_LT(text.size(), 4200U);
  EXPECT_EQ(text.find("a.gguf: the tokenizer is '東東"), 0U);
  EXPECT_NE(text.find("東 [296073 bytes left out] 東"), std::string::npos) << text;
  EXPECT_EQ(text.substr(text.size() - 20), "東東'; use another");
}

TEST(Assert, SaysThePlaceTheConditionAndTheValues) {
  const int parent = 7, node = 3;
  try {
    MEDUSA_ASSERT(parent < node, parent, node);
    FAIL();
  } catch (const std::logic_error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("error_test.cpp:38: assertion failed: parent < node, 7, 3"),
              std::string::npos)
        << text;
  }
}

TEST(Assert, CostsNothingWhenItHolds) {
  int evaluated = 0;
  MEDUSA_ASSERT(true, ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

}  // namespace

}  // namespace medusa
