#include "tools/chat/message_lines.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/base/error_text.h"

namespace medusa {
namespace {

using fixtures::error_text;

/// The messages of some lines, those of blocks with "|" before them.
std::vector<std::string> messages_of(const std::vector<std::string>& typed) {
  MessageLines lines;
  std::vector<std::string> out;
  for (const std::string& line : typed)
    if (const auto message = lines.add(line))
      out.push_back((message->is_block ? "|" : "") + message->text);
  lines.finish();
  return out;
}

using Texts = std::vector<std::string>;

TEST(MessageLines, ALineIsAMessage) {
  EXPECT_EQ(messages_of({"One", "", "  \t", "Two\r", "Say \"\"\" twice"}),
            (Texts{"One", "Two", "Say \"\"\" twice"}));
}

TEST(MessageLines, SeveralLinesStandBetweenMarks) {
  EXPECT_EQ(messages_of({"\"\"\"", "int main() {", "", "}", "\"\"\"", "Next"}),
            (Texts{"|int main() {\n\n}", "Next"}));
  EXPECT_EQ(messages_of({"\"\"\"One", "two\"\"\""}), Texts{"|One\ntwo"});
  EXPECT_EQ(messages_of({"\"\"\"/help\"\"\""}), Texts{"|/help"});
  EXPECT_EQ(messages_of({"\"\"\"\"\"\"", "\"\"\"", "\"\"\"", "x"}), Texts{"x"}) << "empty ones";
}

TEST(MessageLines, WhatIsBegunMustEnd) {
  EXPECT_EQ(error_text([] {
              messages_of({"\"\"\"", "One"});
            }),
            "the input ends inside a message that \"\"\" began, expected \"\"\" at the end of its "
            "last line; add it");
  MessageLines lines;
  lines.add("\"\"\"One");
  EXPECT_TRUE(lines.is_in_block());
  lines.clear();
  EXPECT_FALSE(lines.is_in_block());
  EXPECT_EQ(lines.add("Two")->text, "Two");
}

TEST(MessageLines, RefusesWhatIsNoText) {
  EXPECT_EQ(error_text([] { messages_of({"caf\xe9"}); }),
            "the message is not UTF-8, expected text in it; set the terminal to UTF-8, or convert "
            "what comes through the pipe");
  EXPECT_EQ(messages_of({"caf\xc3\xa9"}), Texts{"caf\xc3\xa9"});
}

}  // namespace
}  // namespace medusa
