#include "server/tool_calls/tool_fields.h"

#include <fmt/format.h>

#include "server/api/api_error.h"

namespace medusa {
namespace {

void read_chat_tools(RequestFields& fields, OrderedBody& body, ToolSet& out) {
  if (!fields.has("tools")) return;
  const nlohmann::json& list = fields.at("tools");
  if (!list.is_array()) fields.refuse("tools", "a list of functions");
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_object()) fields.refuse("tools", "a list of objects with type and function");
    RequestFields tool = fields.within(list[i], fmt::format("tools[{}].", i));
    if (tool.text("type").value_or("") != "function") tool.refuse("type", "function");
    auto described = tool.object("function");
    if (!described) tool.refuse("function", "an object with a name");
    ToolFunction function{.name = described->text("name").value_or(""),
                          .description = described->text("description").value_or(""),
                          .parameters = nullptr,
                          .strict = described->boolean("strict").value_or(false)};
    if (described->has_object("parameters"))
      function.parameters = body.json()["tools"][i]["function"]["parameters"];
    tool.warn_of_unknown();
    described->warn_of_unknown();
    add_tool(out, std::move(function), *described);
  }
}

/// Of a choice in OpenAI's chats.
RequestFields function_object(RequestFields& named) {
  auto function = named.object("function");
  if (!function) named.refuse("function", "an object with a name");
  named.warn_of_unknown();
  return *function;
}

}  // namespace

ToolSet read_tool_fields(RequestFields& fields, OrderedBody& body) {
  ToolSet out;
  read_chat_tools(fields, body, out);
  read_tool_choice(fields, function_object, out);
  out.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  return out;
}

void read_tool_choice(RequestFields& fields,
                      const std::function<RequestFields(RequestFields& named)>& function_of,
                      ToolSet& tools) {
  if (!fields.has("tool_choice")) return;
  const nlohmann::json& choice = fields.at("tool_choice");
  if (choice == "auto") return;
  if (choice == "none") {
    tools.use = ToolUse::None;
    return;
  }
  if (choice != "required" && !choice.is_object())
    fields.refuse("tool_choice", "none, auto, required, or an object that names a function");
  if (tools.functions.empty())
    fields.refuse("tool_choice", "none or auto, since there are no tools");
  tools.use = ToolUse::Required;
  if (!choice.is_object()) return;
  RequestFields named = *fields.object("tool_choice");
  if (named.text("type").value_or("") != "function") named.refuse("type", "function");
  RequestFields function = function_of(named);
  require_function(function, "name", tools);
  function.warn_of_unknown();
}

void require_function(RequestFields& fields, const std::string& name, ToolSet& tools) {
  tools.use = ToolUse::Required;
  tools.only = fields.text(name).value_or("");
  for (const ToolFunction& each : tools.functions)
    if (each.name == tools.only) return;
  fields.refuse(name, "the name of one of the tools");
}

void expect_tools_can_be_written(const ToolSet& tools, bool takes_tools) {
  if (!tools.may_call() || takes_tools) return;
  throw ApiError(
      400,
      "tools: the model's chat template does not write tools and calls, expected one "
      "that writes them as <tool_call>{…}</tool_call>; leave tools out, or serve a model "
      "that was trained with them",
      "tools", "unsupported_parameter");
}

}  // namespace medusa
