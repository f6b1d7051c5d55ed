#include "data/chat/model_chat_template.h"

#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "data/chat/jinja/json.h"
#include "data/tokenizer/white_space.h"

namespace medusa {
namespace {

constexpr const char* kName = "the model's chat template";

// Stand for messages when the template is asked where it puts them: words that none contains.
constexpr std::string_view kQuestion = "MedusaAsksHere";
constexpr std::string_view kAnswer = "MedusaAnswersHere";

// Cuts a special token's text in two while the template runs. A private character of Unicode: no
// template looks for it, and a message that holds it loses it.
constexpr std::string_view kCut = "\xEE\xBF\xBF";  // U+EFFF

std::tm fixed_date() {
  std::tm date{};
  date.tm_year = 2024 - 1900;
  date.tm_mon = 6;
  date.tm_mday = 26;
  date.tm_wday = 5;
  date.tm_yday = 207;
  return date;
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

/// The text of the first special token in it; empty: there is none.
std::string first_special(const Tokenizer& tokenizer, std::string_view text) {
  for (const TokenId id : tokenizer.encode(text, true))
    if (tokenizer.is_special(id)) return tokenizer.bytes(id);
  return "";
}

/// With every special token's text cut behind its first character, so that it is found no more.
std::string cut_special_tokens(const Tokenizer& tokenizer, std::string text) {
  while (true) {
    const std::string special = first_special(tokenizer, text);
    const size_t size = special.empty() ? 0 : read_utf8(special).size;
    const size_t first = special.empty() ? std::string::npos : text.find(special);
    if (first == std::string::npos || size == special.size()) return text;
    for (size_t at = first; at != std::string::npos; at = text.find(special, at + 1))
      text.insert(at + size, kCut);
  }
}

/// The same for every text in some JSON.
nlohmann::ordered_json cut_special_tokens(const Tokenizer& tokenizer,
                                          const nlohmann::ordered_json& json) {
  if (json.is_string()) return cut_special_tokens(tokenizer, json.get<std::string>());
  if (!json.is_structured()) return json;
  nlohmann::ordered_json out =
      json.is_array() ? nlohmann::ordered_json::array() : nlohmann::ordered_json::object();
  for (const auto& [key, value] : json.items())
    if (json.is_array())
      out.push_back(cut_special_tokens(tokenizer, value));
    else
      out[cut_special_tokens(tokenizer, key)] = cut_special_tokens(tokenizer, value);
  return out;
}

std::string cut_json_text(const Tokenizer& tokenizer, const std::string& json) {
  const auto parsed = nlohmann::ordered_json::parse(json);
  const auto cut = cut_special_tokens(tokenizer, parsed);
  return cut == parsed ? json : json_text(cut);  // which may not have all digits of its numbers
}

/// A message as transformers gives it to a template.
jinja::Value message_value(const ChatMessage& message, jinja::Heap& heap) {
  std::vector<std::pair<jinja::Value, jinja::Value>> entries{
      {heap.text("role"), heap.text(message.role)},
      {heap.text("content"), heap.text(message.content)}};
  if (!message.tool_calls.empty()) {
    std::vector<jinja::Value> calls;
    for (const ToolCall& call : message.tool_calls)
      calls.push_back(heap.dict(
          {{heap.text("type"), heap.text("function")},
           {heap.text("id"), heap.text(call.id)},
           {heap.text("function"),
            heap.dict({{heap.text("name"), heap.text(call.name)},
                       {heap.text("arguments"), jinja::from_json(call.arguments, heap)}})}}));
    entries.emplace_back(heap.text("tool_calls"), heap.list(std::move(calls)));
  }
  if (message.role == "tool") {
    entries.emplace_back(heap.text("tool_call_id"), heap.text(message.tool_call_id));
    if (!message.name.empty()) entries.emplace_back(heap.text("name"), heap.text(message.name));
  }
  return heap.dict(entries);
}

/// Whether a call of this function stands in the text as <tool_call>{…}</tool_call>.
bool has_tagged_call(std::string_view text, const std::string& function) {
  constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
  for (size_t at = text.find(kOpen); at != std::string_view::npos; at = text.find(kOpen, at + 1)) {
    const size_t begin = at + kOpen.size(), end = text.find(kClose, begin);
    if (end == std::string_view::npos) return false;
    const std::string_view inner = text.substr(begin, end - begin);
    if (nests_too_deeply(inner)) continue;
    const auto call = nlohmann::json::parse(inner, nullptr, false);
    if (!call.is_object()) continue;
    const auto name = call.find("name"), arguments = call.find("arguments");
    if (name != call.end() && *name == function && arguments != call.end() &&
        arguments->is_object())
      return true;
  }
  return false;
}

std::vector<TokenId> encode_cut_text(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids;
  while (true) {
    const size_t cut = text.find(kCut);
    const auto more = tokenizer.encode(text.substr(0, cut), true);
    ids.insert(ids.end(), more.begin(), more.end());
    if (cut == std::string_view::npos) break;
    text.remove_prefix(cut + kCut.size());
  }
  if (tokenizer.adds_bos() && (ids.empty() || ids[0] != *tokenizer.bos()))
    ids.insert(ids.begin(), *tokenizer.bos());
  return ids;
}

/// What marks the end at the start of the text that follows a message.
std::string end_mark(const Tokenizer& tokenizer, std::string_view text) {
  const std::string special = first_special(tokenizer, text);
  const size_t at = special.empty() ? std::string_view::npos : text.find(special);
  const std::string_view words = trim(text.substr(0, at));
  return words.empty() ? special : std::string(words);
}

}  // namespace

ModelChatTemplate::ModelChatTemplate(std::string_view jinja, const Tokenizer& tokenizer)
    : template_(jinja, kName),
      bos_(tokenizer.bos() ? tokenizer.bytes(*tokenizer.bos()) : ""),
      eos_(tokenizer.eos() ? tokenizer.bytes(*tokenizer.eos()) : "") {}

std::string ModelChatTemplate::render(const std::vector<ChatMessage>& messages,
                                      bool add_generation_prompt, const std::string& tools) const {
  const auto variables = [&](jinja::Heap& heap) {
    std::vector<jinja::Value> list;
    list.reserve(messages.size());
    for (const ChatMessage& message : messages) list.push_back(message_value(message, heap));
    const jinja::Value declared = tools.empty() ? jinja::None{} : jinja::from_json(tools, heap);
    return jinja::Variables{{"messages", heap.list(std::move(list))},
                            {"add_generation_prompt", add_generation_prompt},
                            {"tools", declared},
                            {"documents", jinja::None{}},
                            {"bos_token", heap.text(bos_)},
                            {"eos_token", heap.text(eos_)}};
  };
  jinja::RenderOptions options;
  options.now = fixed_date();
  return template_.render(variables, options);
}

std::vector<TokenId> ModelChatTemplate::encode(const Tokenizer& tokenizer,
                                               const std::vector<ChatMessage>& messages,
                                               const std::string& tools) const {
  std::vector<ChatMessage> safe = messages;
  for (ChatMessage& message : safe) {
    for (std::string* text : {&message.content, &message.tool_call_id, &message.name})
      *text = cut_special_tokens(tokenizer, std::move(*text));
    for (ToolCall& call : message.tool_calls) {
      call.id = cut_special_tokens(tokenizer, std::move(call.id));
      call.name = cut_special_tokens(tokenizer, std::move(call.name));
      call.arguments = cut_json_text(tokenizer, call.arguments);
    }
  }
  return encode_cut_text(
      tokenizer, render(safe, true, tools.empty() ? tools : cut_json_text(tokenizer, tools)));
}

bool ModelChatTemplate::takes_tools(const Tokenizer& tokenizer) const {
  for (const char* mark : {"<tool_call>", "</tool_call>"})
    if (const auto id = tokenizer.find(mark); id && tokenizer.is_special(*id)) return false;
  const std::string function = "medusa_calls", result = "MedusaGetsThis";
  const std::string tools =
      R"([{"type": "function", "function": {"name": ")" + function +
      R"(", "description": "Calls.", "parameters": {"type": "object", "properties": {"a": )"
      R"({"type": "string", "description": "A text."}}}}}])";
  const ChatMessage user{"user", std::string(kQuestion)};
  const ChatMessage call{"assistant", "", {{"call00001", function, R"({"a": "b"})"}}};
  const ChatMessage answer{"tool", result, {}, "call00001", function};
  try {
    return count(render({user}, true, tools), function) > 0 &&
           has_tagged_call(render({user, call, answer}, true, tools), function) &&
           count(render({user, call, answer}, true), result) > 0;
  } catch (const UserError&) {
    return false;
  }
}

std::string ModelChatTemplate::user_prefix() const {
  const std::string text = render({{"user", std::string(kQuestion)}}, false);
  if (const size_t times = count(text, kQuestion); times != 1)
    throw UserError(
        fmt::format("{}: writes a user's text {} times, expected once, to find where a user's turn "
                    "begins; give prompts (distill.prompts), or choose a built-in template with "
                    "backbone.chat_template",
                    kName, times));
  return text.substr(0, text.find(kQuestion));
}

std::vector<TokenId> ModelChatTemplate::encode_open_user_turn(const Tokenizer& tokenizer,
                                                              std::string_view first_words) const {
  return encode_cut_text(tokenizer,
                         user_prefix() + cut_special_tokens(tokenizer, std::string(first_words)));
}

ModelChatTemplate::Ends ModelChatTemplate::find_ends(const Tokenizer& tokenizer) const {
  const std::string whole =
      render({{"user", std::string(kQuestion)}, {"assistant", std::string(kAnswer)}}, false);
  if (count(whole, kQuestion) != 1 || count(whole, kAnswer) != 1) return {};
  const std::string_view text = whole;
  const size_t behind_question = text.find(kQuestion) + kQuestion.size();
  const size_t answer = text.find(kAnswer);
  if (answer < behind_question) return {};
  return {end_mark(tokenizer, text.substr(behind_question, answer - behind_question)),
          end_mark(tokenizer, text.substr(answer + kAnswer.size()))};
}

}  // namespace medusa
