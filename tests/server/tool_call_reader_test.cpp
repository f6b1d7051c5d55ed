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
            R"([call_00 f {"a": 1, "b": [2]}])"},
           {R"(I look.

<tool_call>{"arguments": {}, "name": "f"}</tool_call>
<tool_call>{"name": "g"}</tool_call>
)",
            "I look.[call_00 f {}][call_01 g {}]"},
           {R"(<tool_call>{"name": "f"}</tool_call> and  more )", "[call_00 f {}]and  more "},
           {R"(<tool_call>{"name": "f", "arguments": {"a": "</tool_call> \" {"}}</tool_call>)",
            R"([call_00 f {"a": "</tool_call> \" {"}])"},
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

/// @param arguments  as the model writes them. @returns  as the call has them.
std::string read_arguments(const std::string& arguments) {
  ToolCallReader reader(true, "call_");
  const auto parts = reader.add(
      R"(<tool_call>{"arguments": 0, "x" : [{"arguments": 1}, "}"] , "\u0061rguments" :)" +
      arguments + R"( , "name": "f"}</tool_call>)");
  return parts.size() == 1 && parts[0].call ? parts[0].call->arguments : "no call";
}

TEST(ToolCallReader, ArgumentsAreTheModelsOwnBytes) {
  for (const std::string same :
       {R"({"a": 99999999999999999999999, "b": 9e9, "c": 0.10, "a": 2})", "{\r\n\t}",
        R"({"a": "\ud83d\ude00 \\ud800 \u00e9", "b": {"c": [{}, "]"]}})",
        R"({"a": -0, "b": 1e-999, "c": -1.7976931348623157e308})"})
    EXPECT_EQ(read_arguments(same), same);
}

TEST(ToolCallReader, WhatParsersRefuseThoughItIsJsonIsReplaced) {
  EXPECT_EQ(read_arguments(R"({"a": 99e999, "b": [-1E+400]})"),
            R"({"a": 1.7976931348623157e+308, "b": [-1.7976931348623157e+308]})");
  EXPECT_EQ(read_arguments(R"({"\uD88D": "\ud88d\ud88d\udc00\udc00x\ud88d\n"})"),
            R"({"\ufffd": "\ufffd\ud88d\udc00\ufffdx\ufffd\n"})");
  EXPECT_EQ(read_arguments(R"({"a": "\ud8"})"), "no call");
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
