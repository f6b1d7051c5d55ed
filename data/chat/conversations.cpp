#include "data/chat/conversations.h"

#include "base/json_text.h"
#include "data/json.h"
#include "data/text_file.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

/// Empty: nobody we know.
std::string role_of(const std::string& speaker) {
  if (speaker == "human" || speaker == "user") return "user";
  if (speaker == "gpt" || speaker == "assistant" || speaker == "chatgpt") return "assistant";
  return speaker == "system" ? speaker : "";
}

/// @param key  of the value in its message.
std::string text_of_value(const Json& value, const char* key, const std::string& place) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) return text_of_parts(value, place);
  throw UserError(
      fmt::format("{}: '{}' is {}, expected a text or a list of parts of type text; correct or "
                  "remove it",
                  place, key, value.type_name()));
}

/// @param who, what  the keys of one message.
/// @returns  false: the conversation is one to skip.
bool read_messages(const Json& list, const char* who, const char* what, const std::string& place,
                   std::vector<ChatMessage>& out) {
  if (!list.is_array())
    throw UserError(
        fmt::format("{}: the messages are {}, expected a list of {} and {}; correct or "
                    "remove the entry",
                    place, list.type_name(), who, what));
  bool answered = false;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string source = fmt::format("{}: message {}", place, i);
    const std::string role = role_of(need_json<std::string>(list[i], who, source));
    std::string text = text_of_value(need_json<Json>(list[i], what, source), what, source);
    if (role.empty() || (role == "system" && i > 0)) return false;
    answered = answered || role == "assistant";
    out.push_back({role, std::move(text)});
  }
  return answered;
}

}  // namespace

std::string text_of_parts(const Json& parts, const std::string& place) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto source = fmt::format("{}: content[{}]", place, i);
    const auto type = need_json<std::string>(parts[i], "type", source);
    if (type != "text")
      throw UserError(
          fmt::format("{}: is of type '{}', expected 'text'; remove the part", source, type));
    text += need_json<std::string>(parts[i], "text", source);
  }
  return text;
}

void add_conversation(const Json& entry, const std::string& place, const std::string& fallback,
                      ConversationSet& set) {
  Conversation out{entry_id(entry, place, fallback), {}};
  bool usable = false;
  const auto conversations = find_json<Json>(entry, "conversations", place);
  const auto messages = find_json<Json>(entry, "messages", place);
  if (conversations && messages)
    throw UserError(
        fmt::format("{}: has 'conversations' and 'messages', expected one of them; remove the "
                    "other",
                    place));
  if (entry.is_array()) {
    usable = read_messages(entry, "role", "content", place, out.messages);
  } else if (conversations) {
    usable = read_messages(*conversations, "from", "value", place, out.messages);
  } else if (messages) {
    usable = read_messages(*messages, "role", "content", place, out.messages);
  } else {
    throw UserError(
        fmt::format("{}: has no conversation, expected 'conversations' or 'messages'; correct or "
                    "remove the entry",
                    place));
  }
  if (usable)
    set.conversations.push_back(std::move(out));
  else
    ++set.skipped;
}

ConversationSet read_conversations(const fs::path& file) {
  ConversationSet set;
  if (lower_extension(file) == ".json") {
    const Json root = read_json_file(file);
    if (root.is_object()) add_conversation(root, file.string(), file.stem().string(), set);
    for (size_t i = 0; i < root.size() && root.is_array(); ++i)
      add_conversation(root[i], fmt::format("{}: element {}", file.string(), i),
                       fmt::format("{}:{}", file.stem().string(), i), set);
  } else {
    read_json_lines(file, [&](const Json& entry, const JsonLine& line) {
      add_conversation(entry, line.place, line.id, set);
    });
  }
  if (set.conversations.empty())
    throw UserError(fmt::format(
        "{}: holds no conversation with an answer, expected at least one; give another file",
        file.string()));
  return set;
}

}  // namespace medusa
