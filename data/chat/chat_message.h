// One message of a conversation.
#pragma once

#include <string>

namespace medusa {

struct ChatMessage {
  std::string role;  // "system" (only as the first), "user" or "assistant"
  std::string content;
};

}  // namespace medusa
