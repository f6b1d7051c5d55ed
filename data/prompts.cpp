#include "data/prompts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/json_text.h"
#include "base/utf8.h"
#include "data/json.h"
#include "data/text_file.h"
#include "data/tokenizer/white_space.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse_prompt(const std::string& place, const std::string& found,
                                const std::string& expected) {
  throw UserError(fmt::format("{}: {}, expected {}; correct or remove it", place, found, expected));
}

std::string need_text(const Json& value, const std::string& name, const std::string& place) {
  if (!value.is_string())
    refuse_prompt(place, fmt::format("{} is {}", name, value.type_name()), "a text");
  auto text = value.get<std::string>();
  if (is_blank(text)) refuse_prompt(place, fmt::format("{} is empty", name), "a text");
  return text;
}

void read_turns(const Json& turns, Prompt& prompt, const std::string& place) {
  if (!turns.is_array() || turns.empty())
    refuse_prompt(place, "'turns' holds no text", "a list of the user's messages");
  for (size_t i = 0; i < turns.size(); ++i) {
    auto text = need_text(turns[i], fmt::format("turns[{}]", i), place);
    if (i == 0)
      prompt.messages.push_back({"user", std::move(text)});
    else
      prompt.later_turns.push_back(std::move(text));
  }
}

void read_messages(const Json& messages, Prompt& prompt, const std::string& place) {
  if (!messages.is_array())
    refuse_prompt(place, "'messages' is no list", "a list of role and content");
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto source = fmt::format("{}: messages[{}]", place, i);
    const auto role = need_json<std::string>(messages[i], "role", source);
    const bool known =
        role == "user" || role == "assistant" || (role == "system" && prompt.messages.empty());
    if (!known)
      refuse_prompt(source, fmt::format("the role is '{}'", role),
                    "user, assistant, or system as the first");
    auto content = need_json<Json>(messages[i], "content", source);
    if (content.is_array()) content = text_of_parts(content, source);
    prompt.messages.push_back({role, need_text(content, "the content", source)});
  }
  while (!prompt.messages.empty() && prompt.messages.back().role == "assistant")
    prompt.messages.pop_back();
  if (prompt.messages.empty() || prompt.messages.back().role != "user")
    refuse_prompt(place, "no user speaks in 'messages'", "a message of the user");
}

/// Who speaks in a ShareGPT conversation; nullopt: we do not know.
std::optional<std::string> known_role(const std::string& speaker) {
  if (speaker == "human" || speaker == "user") return "user";
  if (speaker == "gpt" || speaker == "assistant" || speaker == "chatgpt") return "assistant";
  if (speaker == "system") return "system";
  return std::nullopt;
}

/// False: the conversation is one to skip.
bool read_conversation(const Json& conversation, Prompt& prompt, const std::string& place) {
  if (!conversation.is_array())
    refuse_prompt(place, "'conversations' is no list", "a list of from and value");
  for (size_t i = 0; i < conversation.size(); ++i) {
    const auto source = fmt::format("{}: conversations[{}]", place, i);
    const auto role = known_role(need_json<std::string>(conversation[i], "from", source));
    const auto text = need_json<std::string>(conversation[i], "value", source);
    if (!role) return false;
    if (*role == "system" && i == 0 && prompt.messages.empty() && !is_blank(text))
      prompt.messages.push_back({"system", text});
    if (*role != "user" || is_blank(text)) continue;
    if (prompt.messages.empty() || prompt.messages.back().role == "system")
      prompt.messages.push_back({"user", text});
    else
      prompt.later_turns.push_back(text);
  }
  return !prompt.messages.empty() && prompt.messages.back().role == "user";
}

/// The instruction, and below it the text that it is about, if there is one.
std::string read_instruction(const Json& instruction, const Json& entry, const std::string& place) {
  std::string text = need_text(instruction, "'instruction'", place);
  const auto input = find_json<Json>(entry, "input", place);
  if (!input || input->is_null() || (input->is_string() && is_blank(input->get<std::string>())))
    return text;
  return text + "\n\n" + need_text(*input, "'input'", place);
}

/// @param place     file:line or file and element.
/// @param fallback  the id, if the entry has none.
void read_entry(const Json& entry, const std::string& place, const std::string& fallback,
                PromptSet& set) {
  Prompt prompt;
  if (entry.is_array()) {
    prompt.id = fallback;
    read_messages(entry, prompt, place);
    set.prompts.push_back(std::move(prompt));
    return;
  }
  if (!entry.is_object())
    refuse_prompt(place, fmt::format("is {}", entry.type_name()), "a JSON object");
  prompt.id = entry_id(entry, place, fallback);
  prompt.category = find_json<std::string>(entry, "category", place).value_or("");
  if (auto system = find_json<std::string>(entry, "system", place); system && !is_blank(*system))
    prompt.messages.push_back({"system", *std::move(system)});
  if (const auto turns = find_json<Json>(entry, "turns", place)) {
    read_turns(*turns, prompt, place);
  } else if (const auto messages = find_json<Json>(entry, "messages", place)) {
    read_messages(*messages, prompt, place);
  } else if (const auto text = find_json<Json>(entry, "text", place)) {
    prompt.messages.push_back({"user", need_text(*text, "'text'", place)});
  } else if (const auto asked = find_json<Json>(entry, "prompt", place)) {
    if (asked->is_array())
      read_messages(*asked, prompt, place);
    else
      prompt.messages.push_back({"user", need_text(*asked, "'prompt'", place)});
  } else if (const auto instruction = find_json<Json>(entry, "instruction", place)) {
    prompt.messages.push_back({"user", read_instruction(*instruction, entry, place)});
  } else if (const auto conversation = find_json<Json>(entry, "conversations", place)) {
    if (!read_conversation(*conversation, prompt, place)) {
      ++set.skipped;
      return;
    }
  } else {
    refuse_prompt(place, "has no prompt",
                  fmt::format("one of '{}'", fmt::join(kPromptKeys, "', '")));
  }
  set.prompts.push_back(std::move(prompt));
}

void read_list(const Json& root, const fs::path& file, PromptSet& set) {
  if (!root.is_array())
    throw UserError(
        fmt::format("{}: holds {}, expected a list of conversations; give such a list, "
                    "or a .jsonl file with one object per line",
                    file.string(), root.type_name()));
  const auto id = [&](size_t i) { return fmt::format("{}:{}", file.stem().string(), i); };
  if (!root.empty() && root[0].is_object() && root[0].contains("role"))
    return read_entry(root, file.string(), id(0), set);  // one conversation
  for (size_t i = 0; i < root.size(); ++i)
    read_entry(root[i], fmt::format("{}: element {}", file.string(), i), id(i), set);
}

bool begins_as_json(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && (text[first] == '{' || text[first] == '[');
}

/// Every line that is not blank is the user's message.
void read_plain_lines(const std::string& text, const fs::path& file, PromptSet& set) {
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (is_blank(line)) continue;
    if (!is_valid_utf8(line))
      refuse_prompt(fmt::format("{}:{}", file.string(), number), "is not UTF-8", "text in it");
    set.prompts.push_back({.id = fmt::format("{}:{}", file.stem().string(), number),
                           .category = "",
                           .messages = {{"user", std::move(line)}},
                           .later_turns = {}});
  }
}

}  // namespace

PromptSet read_prompts(const fs::path& file) {
  PromptSet set;
  const std::string extension = lower_extension(file);
  if (extension == ".json") {
    read_list(read_json_file(file), file, set);
  } else {
    const std::string text = read_text(file);
    if (extension.empty() && is_json_list(text))
      read_list(parse_json_text(text, file), file, set);
    else if (extension == ".txt" || (file == "-" && !begins_as_json(text)))
      read_plain_lines(text, file, set);
    else
      parse_json_lines(text, file, [&](const Json& entry, const JsonLine& line) {
        read_entry(entry, line.place, line.id, set);
      });
  }
  if (set.prompts.empty())
    throw UserError(fmt::format(
        "{}: holds no prompt{}, expected at least one; give another file", file.string(),
        set.skipped > 0 ? fmt::format(" ({} conversations were skipped)", set.skipped) : ""));
  return set;
}

}  // namespace medusa
