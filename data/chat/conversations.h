// Conversations: messages, and files of them as other programs write these: ShareGPT and lists of
// messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
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

struct Conversation {
  std::string id;                     // the file's own, else its name and line or element
  std::vector<ChatMessage> messages;  // as they stand; white space is kept
};

struct ConversationSet {
  std::vector<Conversation> conversations;
  int64_t skipped = 0;  // someone unknown speaks, or nobody answers
};

/// A .jsonl file, or a .json list, whose entries have "conversations" ([{"from", "value"}, …]) or
/// "messages" ([{"role", "content"}, …]), or are such a list of messages themselves. A .json file
/// may also be one such object. A content may be a list of parts of type text.
/// @throws UserError  with file:line or element: not JSON, neither or both of the two, or mistyped;
///                    and if the file holds no conversation with an answer.
ConversationSet read_conversations(const std::filesystem::path& file);

/// Joins a message's content that is a list of parts, [{"type": "text", "text": …}, …], as chats of
/// OpenAI's API have it.
/// @param place  of the message, for errors.
/// @throws UserError  a part is no text.
std::string text_of_parts(const nlohmann::json& parts, const std::string& place);

/// Adds one such entry, or counts it as skipped.
/// @param place  for messages;  @param fallback  the id, if the entry has none.
/// @throws UserError  as above.
void add_conversation(const nlohmann::json& entry, const std::string& place,
                      const std::string& fallback, ConversationSet& set);

}  // namespace medusa
