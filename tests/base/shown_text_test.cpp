#include "base/shown_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace medusa {
namespace {

TEST(ShownText, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(shown_text("\x1b]52;c;ZXZpbA==\a"), R"(\x1b]52;c;ZXZpbA==\x07)");
  EXPECT_EQ(shown_text(std::string_view("a\0b\r\b\x7f", 6)), R"(a\x00b\x0d\x08\x7f)");
  EXPECT_EQ(shown_text("\xC2\x80\xC2\x9B"
                       "2J\xC2\x9D\xC2\x9F"),
            R"(\u0080\u009b2J\u009d\u009f)")
      << "C1 as UTF-8";
  EXPECT_EQ(shown_text("\x9b"
                       "2J"),
            R"(\x9b2J)")
      << "C1 as a byte";
  EXPECT_EQ(shown_text("exe.\u202Efdp\u202C \u2066x\u2069"), R"(exe.\u202efdp\u202c \u2066x\u2069)")
      << "turned text";
}

TEST(ShownText, InALineThereAreNoOthers) {
  EXPECT_EQ(shown_in_line("a\nb\tc\x1b[2J"), R"(a\nb\tc\x1b[2J)");
}

TEST(ShownText, LeavesLinesTabsAndOtherScripts) {
  for (const char* text : {"", "expected one of\n\tStraße, 東京 😀", "\u00A0\u2029\uFEFF", "\\x1b",
                           "שלום\u200F", "e\u0301"})
    EXPECT_EQ(shown_text(text), text);
}

TEST(ShownText, OfAnyBytesIsHarmlessUtf8AndIsLeftAsItIs) {
  std::string bytes;
  for (int high = 0; high < 256; ++high)
    for (int low = 0; low < 256; ++low) bytes += {static_cast<char>(high), static_cast<char>(low)};
  const std::string shown = shown_text(bytes);
  for (std::string_view rest = shown; !rest.empty();) {
    const Utf8Step step = read_utf8(rest);
    ASSERT_EQ(step.kind, Utf8Step::Kind::Character);
    ASSERT_FALSE(is_control(step.codepoint)) << step.codepoint;
    rest.remove_prefix(step.size);
  }
  EXPECT_EQ(shown_text(shown), shown);
}

TEST(ShownJson, SaysTheSameWithoutControlCharacters) {
  const nlohmann::json value{{"a\x1b", "\x7f\xC2\x9B\u202E\xF4\x8F\xBF\xBF é\n"}};
  const std::string json = shown_json(value.dump());
  EXPECT_EQ(json, "{\"a\\u001b\":\"\\u007f\\u009b\\u202e\xF4\x8F\xBF\xBF é\\n\"}");
  EXPECT_EQ(nlohmann::json::parse(json), value);
}

}  // namespace
}  // namespace medusa
