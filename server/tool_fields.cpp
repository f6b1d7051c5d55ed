#include "server/tool_fields.h"

#include <fmt/format.h>

#include "server/api_error.h"

namespace medusa {
namespace {

using nlohmann::ordered_json;

void read_tools(RequestFields& fields, std::string_view body, ToolSet& out) {
  if (!fields.has("tools")) return;
  const nlohmann::json& list = fields.at("tools");
  if (!list.is_array()) fields.refuse("tools", "a list of functions");
  const auto ordered = ordered_json::parse(body);
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_object()) fields.refuse("tools", "a list of objects with type and function");
    RequestFields tool(list[i], fmt::format("tools[{}].", i));
    if (tool.text("type").value_or("") != "function") tool.refuse("type", "function");
    auto described = tool.object("function");
    if (!described) tool.refuse("function", "an object with a name");
    ToolFunction function{.name = described->text("name").value_or(""),
                          .description = described->text("description").value_or(""),
                          .parameters = nullptr,
                          .strict = described->boolean("strict").value_or(false)};
    if (described->object("parameters"))
      function.parameters = ordered["tools"][i]["function"]["parameters"];
    add_tool(out, std::move(function), *described);
  }
}

void read_choice(RequestFields& fields, ToolSet& out) {
  if (!fields.has("tool_choice")) return;
  const nlohmann::json& choice = fields.at("tool_choice");
  if (choice == "none") {
    out.use = ToolUse::None;
  } else if (choice == "required" || choice.is_object()) {
    out.use = ToolUse::Required;
    if (out.functions.empty())
      fields.refuse("tool_choice", "none or auto, since no tools are there");
    if (!choice.is_object()) return;
    auto named = fields.object("tool_choice");
    if (named->text("type").value_or("") != "function") named->refuse("type", "function");
    auto function = named->object("function");
    if (!function) named->refuse("function", "an object with a name");
    out.only = function->text("name").value_or("");
    for (const ToolFunction& each : out.functions)
      if (each.name == out.only) return;
    function->refuse("name", "the name of one of the tools");
  } else if (choice != "auto") {
    fields.refuse("tool_choice", "none, auto, required, or an object that names a function");
  }
}

}  // namespace

ToolSet read_tool_fields(RequestFields& fields, std::string_view body) {
  ToolSet out;
  read_tools(fields, body, out);
  read_choice(fields, out);
  out.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  return out;
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
