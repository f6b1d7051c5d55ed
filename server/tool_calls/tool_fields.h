// The fields tools, tool_choice and parallel_tool_calls of a chat.
#pragma once

#include <functional>

#include "server/tool_calls/tool_set.h"

namespace medusa {

/// @param body  the request's own text: a schema keeps the order of its keys.
/// @throws ApiError  400: one of them is wrong, or they do not go together.
ToolSet read_tool_fields(RequestFields& fields, OrderedBody& body);

/// Reads tool_choice, once the tools are there.
/// @param function_of  the object that holds the name of a function, in a choice of type function.
/// @throws ApiError  400: it is none, or names no tool.
void read_tool_choice(RequestFields& fields,
                      const std::function<RequestFields(RequestFields& named)>& function_of,
                      ToolSet& tools);

/// Makes a function of the tools the one that is called.
/// @param name  the field of fields that names it.
/// @throws ApiError  400: there is no such tool.
void require_function(RequestFields& fields, const std::string& name, ToolSet& tools);

/// @param takes_tools  whether the model's template does.
/// @throws ApiError  400: the tools may be called and the template does not write them.
void expect_tools_can_be_written(const ToolSet& tools, bool takes_tools);

}  // namespace medusa
