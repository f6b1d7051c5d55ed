#include "tools/chat/dialogue.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "data/chat/conversations.h"
#include "tools/run/output_check.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

bool is_saved_dialogue(const fs::path& file) {
  try {
    Dialogue::load(file);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

/// @param found  "message 2 is of 'user'".
[[noreturn]] void refuse_order(const fs::path& file, const std::string& found) {
  throw UserError(
      fmt::format("{}: {}, expected messages of user and assistant in turn, the assistant's last; "
                  "correct the file",
                  file.string(), found));
}

}  // namespace

std::optional<DialogueTurn> Dialogue::undo() {
  if (turns_.empty()) return std::nullopt;
  DialogueTurn last = std::move(turns_.back());
  turns_.pop_back();
  return last;
}

std::vector<ChatMessage> Dialogue::messages() const {
  std::vector<ChatMessage> out;
  if (!system_.empty()) out.push_back({"system", system_});
  for (const DialogueTurn& turn : turns_) {
    out.push_back({"user", turn.question});
    out.push_back({"assistant", turn.answer});
  }
  return out;
}

void Dialogue::save(const fs::path& file) const {
  if (turns_.empty())
    throw UserError(fmt::format(
        "{}: nothing was said yet, expected at least one answer to save; ask something first",
        file.string()));
  check_output_file(file, "a saved conversation", is_saved_dialogue);
  nlohmann::json list = nlohmann::json::array();
  for (const ChatMessage& each : messages())
    list.push_back({{"role", each.role}, {"content", each.content}});
  write_file(file, json_text(nlohmann::json{{"messages", list}}) + "\n");
}

Dialogue Dialogue::load(const fs::path& file) {
  const ConversationSet set = read_conversations(file);
  const size_t count = set.conversations.size() + static_cast<size_t>(set.skipped);
  if (count != 1)
    throw UserError(
        fmt::format("{}: holds {} conversations, expected one, as /save writes it; give another "
                    "file, or cut this one",
                    file.string(), count));
  const std::vector<ChatMessage>& messages = set.conversations[0].messages;
  Dialogue out;
  size_t at = 0;
  if (!messages.empty() && messages[0].role == "system") out.set_system(messages[at++].content);
  for (size_t begin = at; at < messages.size(); ++at) {
    const bool asks = (at - begin) % 2 == 0;
    if (messages[at].role != (asks ? "user" : "assistant"))
      refuse_order(file, fmt::format("message {} is of '{}'", at, messages[at].role));
    if (asks)
      out.add({messages[at].content, ""});
    else
      out.turns_.back().answer = messages[at].content;
  }
  if (messages.back().role != "assistant") refuse_order(file, "the last message is the user's");
  return out;
}

}  // namespace medusa
