// The fields tools, tool_choice and parallel_tool_calls of a chat.
#pragma once

#include <string_view>

#include "server/tool_set.h"

namespace medusa {

/// @param body  the request's own text: a schema keeps the order of its keys.
/// @throws ApiError  400: one of them is wrong, or they do not go together.
ToolSet read_tool_fields(RequestFields& fields, std::string_view body);

/// @param takes_tools  whether the model's template does.
/// @throws ApiError  400: the tools may be called and the template does not write them.
void expect_tools_can_be_written(const ToolSet& tools, bool takes_tools);

}  // namespace medusa
