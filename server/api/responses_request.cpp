#include "server/api/responses_request.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "server/api/api_error.h"
#include "server/request/chat_messages.h"
#include "server/request/request_reader.h"
#include "server/tool_calls/tool_fields.h"

namespace medusa {
namespace {

/// What the server would have to remember, or to run by itself.
void refuse_what_needs_a_memory(RequestFields& fields) {
  fields.expect_unused("previous_response_id", "");
  fields.expect_unused("conversation", "");
  fields.expect_unused("prompt", nlohmann::json::object());
  fields.expect_unused("background", false);
  fields.expect_unused("top_logprobs", 0);
  fields.expect_unused("truncation", "disabled");
  fields.expect_unused("n", 1);
  fields.expect_unused("response_format", {{"type", "text"}});
  fields.ignore_where("include", {nlohmann::json::array()});
  fields.ignore_where("reasoning", {nlohmann::json{{"effort", "none"}}});
  fields.ignore_where("stream_options", {nlohmann::json{{"include_obfuscation", false}}});
}

ToolSet read_responses_tools(RequestFields& fields, OrderedBody& body) {
  ToolSet out;
  if (fields.has("tools")) {
    const nlohmann::json& list = fields.at("tools");
    if (!list.is_array()) fields.refuse("tools", "a list of functions");
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_object()) fields.refuse("tools", "a list of objects");
      RequestFields tool = fields.within(list[i], fmt::format("tools[{}].", i));
      if (tool.text("type").value_or("") != "function") tool.refuse("type", "function");
      ToolFunction function{.name = tool.text("name").value_or(""),
                            .description = tool.text("description").value_or(""),
                            .parameters = nullptr,
                            .strict = tool.boolean("strict").value_or(false)};
      if (tool.has_object("parameters"))
        function.parameters = body.json()["tools"][i]["parameters"];
      tool.warn_of_unknown();
      add_tool(out, std::move(function), tool);
    }
  }
  read_tool_choice(
      fields, [](RequestFields& named) { return named; }, out);
  out.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  return out;
}

std::optional<WantedGrammar> read_text_format(RequestFields& fields, OrderedBody& body) {
  auto holder = fields.object("text");
  auto format = holder ? holder->object("format") : std::nullopt;
  if (holder) holder->warn_of_unknown();
  if (!format) return std::nullopt;
  auto out = read_format(*format, "text.format", *format, body, "/text/format");
  format->warn_of_unknown();
  return out;
}

/// Reads the list input, item by item.
class InputReader {
 public:
  InputReader(RequestFields& fields, bool takes_tools)
      : fields_(fields), takes_tools_(takes_tools) {}

  void add_system(const std::string& text) {
    if (!messages_.empty() && messages_.back().role == "system")
      messages_.back().content += "\n\n" + text;
    else
      messages_.push_back({"system", text});
  }

  std::vector<ChatMessage> read() {
    const std::string expected =
        fmt::format("a text, or a list of 1 to {} messages", kMostMessages);
    if (!fields_.has("input")) fields_.refuse("input", expected);
    const nlohmann::json& input = fields_.at("input");
    if (input.is_string()) {
      messages_.push_back({"user", input.get<std::string>()});
      return std::move(messages_);
    }
    if (!input.is_array() || input.empty() || input.size() > kMostMessages)
      fields_.refuse("input", expected);
    for (size_t i = 0; i < input.size(); ++i) {
      if (!input[i].is_object()) fields_.refuse("input", "a list of objects");
      RequestFields item = fields_.within(input[i], fmt::format("input[{}].", i));
      read_item(item);
    }
    if (messages_.empty()) fields_.refuse("input", expected);
    return std::move(messages_);
  }

 private:
  void read_item(RequestFields& item) {
    const std::string type = item.text("type").value_or("message");
    if (type == "reasoning") return;  // the model's template leaves it out
    item.ignore({"id", "status"});    // of an item of an answer before
    if (type == "message")
      read_message(item);
    else if (type == "function_call")
      read_call(item);
    else if (type == "function_call_output")
      read_result(item);
    else
      item.refuse("type", "message, function_call, function_call_output or reasoning");
    item.warn_of_unknown();
  }

  static std::string text_of(RequestFields& item, const std::string& name) {
    const std::string expected = "a text or a list of parts of type input_text or output_text";
    if (!item.has(name)) item.refuse(name, expected);
    const auto text = content_text(item.at(name), {"input_text", "output_text", "text"});
    if (!text) item.refuse(name, expected);
    return *text;
  }

  void read_message(RequestFields& item) {
    const std::string role = item.text("role").value_or("");
    const std::string text = text_of(item, "content");
    if (role == "system" || role == "developer")
      add_system(text);
    else if (role == "user" || role == "assistant")
      messages_.push_back({role, text});
    else
      item.refuse("role", "system, developer, user or assistant");
  }

  void expect_tools(RequestFields& item) const {
    if (!takes_tools_)
      item.refuse("type",
                  "message: the model's chat template writes no calls of tools and no results");
  }

  void read_call(RequestFields& item) {
    expect_tools(item);
    ToolCall call{item.text("call_id").value_or(""), item.text("name").value_or(""),
                  item.text("arguments").value_or("{}")};
    if (call.id.empty()) item.refuse("call_id", "a text that is not empty");
    if (call.name.empty()) item.refuse("name", "the function's name");
    if (!is_json_object(call.arguments)) item.refuse("arguments", "a text that is a JSON object");
    if (messages_.empty() || messages_.back().role != "assistant")
      messages_.push_back({"assistant", ""});
    messages_.back().tool_calls.push_back(std::move(call));
  }

  void read_result(RequestFields& item) {
    expect_tools(item);
    ChatMessage out{"tool", text_of(item, "output")};
    out.tool_call_id = item.text("call_id").value_or("");
    out.name = called_.of(messages_, out.tool_call_id);
    if (out.name.empty()) item.refuse("call_id", "the call_id of an item before");
    messages_.push_back(std::move(out));
  }

  RequestFields& fields_;
  bool takes_tools_;
  std::vector<ChatMessage> messages_;
  CalledFunctions called_;
};

/// The answer repeats these, and a stream does so in three events, for which others wait.
void expect_short_repeats(RequestFields& fields) {
  constexpr size_t kMost = 1 << 20;
  size_t bytes = 0;
  for (const char* name : {"metadata", "text", "tool_choice", "tools"}) {
    if (fields.has(name)) bytes += json_text(fields.at(name)).size();
    if (bytes > kMost)
      fields.refuse(name, fmt::format("at most {} bytes of metadata, text, tool_choice and tools, "
                                      "which the answer repeats",
                                      kMost));
  }
}

}  // namespace

CompletionRequest read_responses_request(const nlohmann::json& body, std::string_view text,
                                         const ServedModel& model) {
  RequestReader reader(body, model);
  RequestFields& fields = reader.fields();
  expect_served_model(fields, model);
  refuse_what_needs_a_memory(fields);
  expect_short_repeats(fields);
  reader.out().is_chat = true;
  const char* length = "max_output_tokens";
  reader.set_max_tokens(fields.integer(length, 1, INT32_MAX).value_or(INT32_MAX), length);
  OrderedBody ordered(text);
  const ToolSet tools = read_responses_tools(fields, ordered);
  reader.set_grammar(read_text_format(fields, ordered), tools);
  InputReader input(fields, model.chat.takes_tools());
  if (const auto instructions = fields.text("instructions")) input.add_system(*instructions);
  reader.add_chat(input.read(), tools, 1, "input");
  return reader.finish();
}

}  // namespace medusa
