#include "server/api/messages_request.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "server/request/chat_messages.h"
#include "server/request/request_reader.h"
#include "server/tool_calls/tool_fields.h"

namespace medusa {
namespace {

ToolSet read_messages_tools(RequestFields& fields, OrderedBody& body) {
  ToolSet out;
  if (fields.has("tools")) {
    const nlohmann::json& list = fields.at("tools");
    if (!list.is_array()) fields.refuse("tools", "a list of tools");
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_object()) fields.refuse("tools", "a list of objects");
      RequestFields tool = fields.within(list[i], fmt::format("tools[{}].", i));
      if (tool.text("type").value_or("custom") != "custom") tool.refuse("type", "custom");
      if (!tool.has_object("input_schema")) tool.refuse("input_schema", "a JSON schema");
      add_tool(out,
               {.name = tool.text("name").value_or(""),
                .description = tool.text("description").value_or(""),
                .parameters = body.json()["tools"][i]["input_schema"],
                .strict = tool.boolean("strict").value_or(false)},
               tool);
      tool.ignore({"cache_control"});
      tool.warn_of_unknown();
    }
  }
  auto choice = fields.object("tool_choice");
  if (!choice) return out;
  const std::string type = choice->text("type").value_or("");
  out.parallel = !choice->boolean("disable_parallel_tool_use").value_or(false);
  if (type == "none") {
    out.use = ToolUse::None;
  } else if (type == "any" || type == "tool") {
    if (out.functions.empty()) choice->refuse("type", "auto or none, since there are no tools");
    out.use = ToolUse::Required;
    if (type == "tool") require_function(*choice, "name", out);
  } else if (type != "auto") {
    choice->refuse("type", "auto, any, tool or none");
  }
  choice->warn_of_unknown();
  return out;
}

/// The text of a content: itself, or its parts of type text.
std::string text_of(RequestFields& holder, const std::string& name) {
  const auto text = holder.has(name) ? content_text(holder.at(name), {"text"}) : "";
  if (!text) holder.refuse(name, "a text or a list of parts of type text");
  return *text;
}

/// Reads the list messages: a message of blocks becomes several where it holds results.
class MessagesReader {
 public:
  /// @param ordered  the body: the keys of a call keep their order.
  MessagesReader(const nlohmann::json& body, OrderedBody& ordered, bool takes_tools)
      : body_(body), ordered_(ordered), takes_tools_(takes_tools) {}

  std::vector<ChatMessage> read(RequestFields& fields) {
    if (const std::string system = text_of(fields, "system"); !system.empty())
      messages_.push_back({"system", system});
    const bool is_there = fields.has("messages");
    if (!is_there || !body_["messages"].is_array() || body_["messages"].empty() ||
        body_["messages"].size() > kMostMessages)
      fields.refuse("messages", fmt::format("a list of 1 to {} messages", kMostMessages));
    const nlohmann::json& list = body_["messages"];
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_object()) fields.refuse("messages", "a list of objects");
      index_ = i;
      place_ = fmt::format("messages[{}]", i);
      RequestFields message = fields.within(list[i], place_ + ".");
      read_message(message);
      message.warn_of_unknown();
    }
    if (messages_.back().role == "assistant")
      RequestFields(list.back(), place_ + ".")
          .refuse("role", "user: an answer that is begun is not gone on with");
    return std::move(messages_);
  }

 private:
  void read_message(RequestFields& message) {
    const std::string role = message.text("role").value_or("");
    if (role != "user" && role != "assistant") message.refuse("role", "user or assistant");
    const std::string expected = "a text or a list of blocks";
    if (!message.has("content")) message.refuse("content", expected);
    const nlohmann::json& content = message.at("content");
    if (content.is_string()) {
      messages_.push_back({role, content.get<std::string>()});
      return;
    }
    if (!content.is_array()) message.refuse("content", expected);
    ChatMessage out{role, ""};
    const size_t before = messages_.size();
    for (size_t i = 0; i < content.size(); ++i) {
      if (!content[i].is_object()) message.refuse("content", expected);
      RequestFields block = message.within(content[i], fmt::format("{}.content[{}].", place_, i));
      read_block(block, i, out);
    }
    // Results stand for themselves; a message of empty parts stays an empty message.
    if (!out.content.empty() || !out.tool_calls.empty() || messages_.size() == before)
      messages_.push_back(std::move(out));
  }

  void expect_tools(RequestFields& block) const {
    if (!takes_tools_)
      block.refuse("type",
                   "text: the model's chat template writes no calls of tools and no results");
  }

  void read_block(RequestFields& block, size_t index, ChatMessage& out) {
    const std::string type = block.text("type").value_or("");
    const bool of_user = out.role == "user";
    block.ignore({"cache_control"});
    if (type == "text") {
      const auto text = block.text("text");
      if (!text) block.refuse("text", "a text");
      out.content += *text;
    } else if (type == "tool_use" && !of_user) {
      expect_tools(block);
      ToolCall call{block.text("id").value_or(""), block.text("name").value_or(""), "{}"};
      if (call.id.empty()) block.refuse("id", "a text that is not empty");
      if (call.name.empty()) block.refuse("name", "the tool's name");
      if (!block.has_object("input")) block.refuse("input", "an object");
      call.arguments = json_text(ordered_.json()["messages"][index_]["content"][index]["input"]);
      out.tool_calls.push_back(std::move(call));
    } else if (type == "tool_result" && of_user) {
      expect_tools(block);
      ChatMessage result{"tool", text_of(block, "content")};
      result.tool_call_id = block.text("tool_use_id").value_or("");
      result.name = called_.of(messages_, result.tool_call_id);
      if (result.name.empty())
        block.refuse("tool_use_id", "the id of a tool_use in a message before");
      block.ignore_where("is_error", {false});
      messages_.push_back(std::move(result));
    } else if (!of_user && (type == "thinking" || type == "redacted_thinking")) {
      return;  // the model's template leaves it out
    } else {
      block.refuse("type", of_user ? "text or tool_result" : "text, tool_use or thinking");
    }
    block.warn_of_unknown();
  }

  const nlohmann::json& body_;
  OrderedBody& ordered_;
  bool takes_tools_;
  size_t index_ = 0;   // of the message that is read
  std::string place_;  // of the message that is read
  std::vector<ChatMessage> messages_;
  CalledFunctions called_;
};

/// The output format; what the server would have to run by itself is refused.
std::optional<WantedGrammar> read_other_fields(RequestFields& fields, OrderedBody& body) {
  fields.ignore({"cache_control"});
  fields.ignore_where("speed", {"standard"});
  fields.expect_unused("n", 1);
  fields.expect_unused("response_format", {{"type", "text"}});
  for (const char* name : {"container", "mcp_servers"})
    fields.expect_unused(name, nlohmann::json::array());
  if (auto thinking = fields.object("thinking")) {
    const std::string type = thinking->text("type").value_or("");
    if (type != "disabled" && type != "enabled" && type != "adaptive")
      thinking->refuse("type", "disabled, enabled or adaptive");
    if (type != "disabled") fields.warn("thinking", "no thinking is asked of the model, ignored");
  }
  auto output = fields.object("output_config");
  auto format = output ? output->object("format") : std::nullopt;
  if (output) output->warn_of_unknown();
  if (!format) return std::nullopt;
  if (format->text("type").value_or("") != "json_schema") format->refuse("type", "json_schema");
  return read_schema(*format, body, "/output_config/format");
}

CompletionRequest read_with(const nlohmann::json& body, std::string_view text,
                            const ServedModel& model, bool has_length) {
  RequestReader reader(body, model);
  RequestFields& fields = reader.fields();
  reader.out().is_chat = true;
  const auto most = fields.integer("max_tokens", 1, INT32_MAX);
  if (has_length && !most) fields.refuse("max_tokens", "a whole number of at least 1");
  reader.set_max_tokens(most.value_or(INT32_MAX));
  for (const std::string& stop : fields.texts("stop_sequences", kMostStops, kLongestStop))
    reader.each().stop.push_back(stop);
  OrderedBody ordered(text);
  const ToolSet tools = read_messages_tools(fields, ordered);
  reader.set_grammar(read_other_fields(fields, ordered), tools);
  const auto messages = MessagesReader(body, ordered, model.chat.takes_tools()).read(fields);
  reader.add_chat(messages, tools, 1, "messages");
  return reader.finish();
}

}  // namespace

CompletionRequest read_messages_request(const nlohmann::json& body, std::string_view text,
                                        const ServedModel& model) {
  return read_with(body, text, model, true);
}

CompletionRequest read_count_tokens_request(const nlohmann::json& body, std::string_view text,
                                            const ServedModel& model) {
  return read_with(body, text, model, false);
}

}  // namespace medusa
