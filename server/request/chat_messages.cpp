#include "server/request/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/formats/object_keys.h"
#include "base/json_text.h"
#include "server/api/api_error.h"

namespace medusa {
namespace {

/// Reads one message, whose place is in errors.
class MessageReader {
 public:
  /// @param request  that the message is in.
  MessageReader(const RequestFields& request, const nlohmann::json& json, const std::string& place,
                bool takes_tools)
      : json_(json),
        fields_(request.within(json, place + ".")),
        place_(place),
        takes_tools_(takes_tools) {}

  ChatMessage read(const std::vector<ChatMessage>& before, CalledFunctions& called) {
    const std::string role = fields_.text("role").value_or("");
    ChatMessage out{role == "developer" ? "system" : role, ""};
    if (role == "assistant") {
      fields_.expect_unused("function_call", nullptr);  // what came before tool_calls
      out.tool_calls = calls();
      out.content = content(!out.tool_calls.empty());
    } else if (role == "tool") {
      expect_tools("role");
      out.content = content(false);
      out.tool_call_id = fields_.text("tool_call_id").value_or("");
      out.name = called.of(before, out.tool_call_id);
      fields_.ignore({"name"});  // the call says it
      if (out.name.empty()) fields_.refuse("tool_call_id", "the id of a call in a message before");
    } else if (role == "system" || role == "developer" || role == "user") {
      out.content = content(false);
    } else {
      fields_.refuse("role", "system, developer, user, assistant or tool");
    }
    fields_.warn_of_unknown();
    return out;
  }

 private:
  void expect_tools(const std::string& field) {
    if (takes_tools_) return;
    throw ApiError(400,
                   fmt::format("{0}.{1}: the model's chat template writes no calls of tools and no "
                               "results, expected one that does; leave such messages out, or serve "
                               "a model that was trained with tools",
                               place_, field),
                   fmt::format("{}.{}", place_, field), "unsupported_parameter");
  }

  std::string content(bool may_be_absent) {
    if (!fields_.has("content")) {
      if (may_be_absent) return "";
      fields_.refuse("content", "a text or a list of parts of type text");
    }
    const auto text = content_text(json_["content"], {"text"});
    if (!text) fields_.refuse("content", "a text or a list of parts of type text");
    return *text;
  }

  std::vector<ToolCall> calls() {
    std::vector<ToolCall> out;
    if (!fields_.has("tool_calls") || json_["tool_calls"].empty()) return out;
    expect_tools("tool_calls");
    const nlohmann::json& list = json_["tool_calls"];
    if (!list.is_array()) fields_.refuse("tool_calls", "a list of calls");
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_object()) fields_.refuse("tool_calls", "a list of objects");
      RequestFields call = fields_.within(list[i], fmt::format("{}.tool_calls[{}].", place_, i));
      auto function = call.object("function");
      if (!function) call.refuse("function", "an object with name and arguments");
      ToolCall each{call.text("id").value_or(""), function->text("name").value_or(""),
                    function->text("arguments").value_or("{}")};
      if (each.id.empty()) call.refuse("id", "a text that is not empty");
      if (each.name.empty()) function->refuse("name", "the function's name");
      if (!is_json_object(each.arguments))
        function->refuse("arguments", "a text that is a JSON object");
      call.ignore({"type", "index"});
      call.warn_of_unknown();
      function->warn_of_unknown();
      out.push_back(std::move(each));
    }
    return out;
  }

  const nlohmann::json& json_;
  RequestFields fields_;
  std::string place_;
  bool takes_tools_;
};

}  // namespace

std::optional<std::string> content_text(const nlohmann::json& content,
                                        const std::vector<std::string>& types) {
  if (content.is_null()) return "";
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return std::nullopt;
  std::string out;
  for (const nlohmann::json& part : content) {
    const nlohmann::json type =
        part.is_object() ? part.value("type", nlohmann::json()) : nlohmann::json();
    const bool is_text =
        std::any_of(types.begin(), types.end(), [&](const auto& each) { return type == each; });
    if (!is_text || !part.contains("text") || !part["text"].is_string()) return std::nullopt;
    out += part["text"].get_ref<const std::string&>();
  }
  return out;
}

std::string CalledFunctions::of(const std::vector<ChatMessage>& before, const std::string& id) {
  for (; num_read_ < before.size(); ++num_read_)
    for (const ToolCall& call : before[num_read_].tool_calls)
      names_.insert_or_assign(call.id, call.name);  // some number them anew in each turn
  const auto found = names_.find(id);
  return found == names_.end() ? "" : found->second;
}

bool is_json_object(std::string_view text) {
  return !nests_too_deeply(text) && read_object_keys(text).most <= kMostKeys &&
         nlohmann::json::parse(text, nullptr, false).is_object();
}

std::vector<ChatMessage> read_chat_messages(RequestFields& fields, const std::string& name,
                                            bool takes_tools) {
  const bool is_there = fields.has(name);
  if (!is_there || !fields.at(name).is_array() || fields.at(name).empty() ||
      fields.at(name).size() > kMostMessages)
    fields.refuse(name, fmt::format("a list of 1 to {} messages", kMostMessages));
  const nlohmann::json& list = fields.at(name);
  std::vector<ChatMessage> out;
  CalledFunctions called;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", name, i);
    if (!list[i].is_object())
      throw ApiError(400,
                     fmt::format("{}: expected an object with role and content; correct it", place),
                     place);
    out.push_back(MessageReader(fields, list[i], place, takes_tools).read(out, called));
  }
  return out;
}

}  // namespace medusa
