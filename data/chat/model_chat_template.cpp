#include "data/chat/model_chat_template.h"

#include <fmt/format.h>

#include <ctime>

#include "base/error.h"
#include "base/utf8.h"
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
                                      bool add_generation_prompt) const {
  const auto variables = [&](jinja::Heap& heap) {
    std::vector<jinja::Value> list;
    for (const ChatMessage& message : messages)
      list.push_back(heap.dict({{heap.text("role"), heap.text(message.role)},
                                {heap.text("content"), heap.text(message.content)}}));
    return jinja::Variables{{"messages", heap.list(std::move(list))},
                            {"add_generation_prompt", add_generation_prompt},
                            {"tools", jinja::None{}},
                            {"documents", jinja::None{}},
                            {"bos_token", heap.text(bos_)},
                            {"eos_token", heap.text(eos_)}};
  };
  jinja::RenderOptions options;
  options.now = fixed_date();
  return template_.render(variables, options);
}

std::vector<TokenId> ModelChatTemplate::encode(const Tokenizer& tokenizer,
                                               const std::vector<ChatMessage>& messages) const {
  std::vector<ChatMessage> safe = messages;
  for (ChatMessage& message : safe)
    message.content = cut_special_tokens(tokenizer, std::move(message.content));
  return encode_cut_text(tokenizer, render(safe, true));
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
