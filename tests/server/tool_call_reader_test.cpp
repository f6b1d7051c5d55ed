// Calls in the text of an answer, however the text is cut into pieces.
#include "server/tool_calls/tool_call_reader.h"

#include <gtest/gtest.h>

namespace medusa {
namespace {

/// All parts as one line: texts as they are, calls as [name arguments].
std::string parts_of(const std::string& text, size_t piece) {
  ToolCallReader reader(true, "call_");
  std::string out;
  const auto add = [&out](const std::vector<AnswerPart>& parts) {
    for (const AnswerPart& part : parts)
      out += part.call
                 ? "[" + part.call->id + " " + part.call->name + " " + part.call->arguments + "]"
                 : part.text;
  };
  for (size_t at = 0; at < text.size(); at += piece) add(reader.add(text.substr(at, piece)));
  add(reader.finish());
  return out;
}

struct ReadCase {
  std::string text, parts;
};

TEST(ToolCallReader, GivesTextAndCallsHoweverTheyCome) {
  for (const ReadCase& each : std::initializer_list<ReadCase>{
           {"Hello, you.\n", "Hello, you.\n"},
           {"a <tool or a <tool_call or <", "a <tool or a <tool_call or <"},
           {R"(<tool_call>
{"name": "f", "arguments": {"a": 1, "b": [2]}}
</tool_call>)",
            R"([call_00 f {"a":1,"b":[2]}])"},
           {R"(I look.

<tool_call>{"arguments": {}, "name": "f"}</tool_call>
<tool_call>{"name": "g"}</tool_call>
)",
            "I look.[call_00 f {}][call_01 g {}]"},
           {R"(<tool_call>{"name": "f"}</tool_call> and  more )", "[call_00 f {}]and  more "},
           {R"(<tool_call>{"name": "f", "arguments": {"a": "</tool_call> \" {"}}</tool_call>)",
            R"([call_00 f {"a":"</tool_call> \" {"}])"},
           // What is no call stays as it was written.
           {R"(x <tool_call>{"name": 5}</tool_call> y)",
            R"(x <tool_call>{"name": 5}</tool_call> y)"},
           {R"(<tool_call>{"name": "f", "arguments": "a"}</tool_call>)",
            R"(<tool_call>{"name": "f", "arguments": "a"}</tool_call>)"},
           {"x  <tool_call>{\"name\": \"f\", ", "x  <tool_call>{\"name\": \"f\", "},
           {R"(<tool_call>no</tool_call><tool_call>{"name": "f"}</tool_call>)",
            "<tool_call>no</tool_call>[call_00 f {}]"},
           {"<tool_call>" + std::string(500, '[') + "</tool_call>",
            "<tool_call>" + std::string(500, '[') + "</tool_call>"},
       })
    for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, each.text.size()})
      EXPECT_EQ(parts_of(each.text, piece), each.parts) << piece;
}

TEST(ToolCallReader, LooksForNoCallsWhereThereAreNoTools) {
  ToolCallReader reader(false, "call_");
  const std::string text = "<tool_call>{\"name\": \"f\"}</tool_call> ";
  const auto parts = reader.add(text);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].text, text);
  EXPECT_TRUE(reader.finish().empty());
}

TEST(ToolCallReader, SaysTextAsSoonAsItIsNoCall) {
  ToolCallReader reader(true, "call_");
  EXPECT_EQ(reader.add("a <t").at(0).text, "a");
  EXPECT_EQ(reader.add("x").at(0).text, " <tx");
}

}  // namespace
}  // namespace medusa
