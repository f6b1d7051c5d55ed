// Conversations with their answers, as other programs write them: ShareGPT and lists of messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/chat/chat_message.h"

namespace medusa {

struct Conversation {
  std::string id;                     // the file's own, else its name and line or element
  std::vector<ChatMessage> messages;  // as they stand; white space is kept
};

struct ConversationSet {
  std::vector<Conversation> conversations;
  int64_t skipped = 0;  // someone unknown speaks, or nobody answers
};

/// A .jsonl file, or a .json list, whose entries have "conversations" ([{"from", "value"}, …]) or
/// "messages" ([{"role", "content"}, …]), or are such a list of messages themselves.
/// @throws UserError  with file:line or element: not JSON, neither of the two, or mistyped; and if
///                    the file holds no conversation with an answer.
ConversationSet read_conversations(const std::filesystem::path& file);

}  // namespace medusa
