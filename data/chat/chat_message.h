// One message of a conversation.
#pragma once

#include <string>
#include <vector>

namespace medusa {

/// A function that an answer asks its reader to call.
struct ToolCall {
  std::string id;         // by which the result names its call
  std::string name;       // of the function
  std::string arguments;  // JSON, an object
};

struct ChatMessage {
  std::string role;  // "system" (only as the first), "user", "assistant" or "tool": the result of
                     // a call, which not every template takes
  std::string content;
  std::vector<ToolCall> tool_calls{};  // of an assistant, behind the content
  std::string tool_call_id{};          // of a tool: the call whose result it is
  std::string name{};                  // of a tool: the function; empty: unknown
};

}  // namespace medusa
