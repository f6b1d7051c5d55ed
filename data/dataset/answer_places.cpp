#include "data/dataset/answer_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/tokenizer/white_space.h"

namespace medusa {
namespace {

bool begins_with(std::span<const TokenId> all, std::span<const TokenId> begin) {
  return all.size() >= begin.size() && std::equal(begin.begin(), begin.end(), all.begin());
}

std::string_view without_leading_space(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
}

/// How many ids from the front spell the text, the end of the turn with them; 0: none do exactly.
/// White space that the template writes before an answer may be one token with the answer's first
/// word. Whoever answers writes that token, so it is the answer's.
size_t ids_of_text(const Tokenizer& tokenizer, const ChatTemplate& chat,
                   std::span<const TokenId> ids, std::string_view text) {
  size_t count = 0;
  bool is_before = without_leading_space(text).size() == text.size();
  for (; count < ids.size() && !text.empty(); ++count) {
    const std::string bytes = tokenizer.bytes(ids[count]);
    const std::string_view spelled = is_before ? without_leading_space(bytes) : bytes;
    is_before = is_before && spelled.empty();
    if (bytes.empty() || !text.starts_with(spelled)) return 0;
    text.remove_prefix(spelled.size());
  }
  if (!text.empty()) return 0;
  const auto end = tokenizer.find(chat.end_of_turn());
  return end && count < ids.size() && ids[count] == *end ? count + 1 : count;
}

/// The sample of the answer that stands last. Empty: it cannot be told which ids are the answer's.
/// @param messages  up to the answer.
Sample find_last(const Tokenizer& tokenizer, const ChatTemplate& chat,
                 std::vector<ChatMessage> messages) {
  const std::string text = messages.back().content;
  std::vector<ChatMessage> before(messages.begin(), messages.end() - 1);
  if (before.empty() || before.back().role != "user") return {};
  const std::vector<TokenId> prompt = chat.encode(tokenizer, before);
  messages.push_back({"user", "x"});  // with a turn behind it the answer is written to its end
  std::vector<TokenId> all = chat.encode(tokenizer, messages);
  if (prompt.empty() || !begins_with(all, prompt)) return {};
  const size_t count = ids_of_text(tokenizer, chat, std::span(all).subspan(prompt.size()), text);
  if (count == 0) return {};
  all.resize(prompt.size() + count);
  return {{}, std::move(all), static_cast<int64_t>(prompt.size()), {}};
}

/// The same of an answer that may begin with the white space that the template writes, as exported
/// ones do.
Sample sample_of_last(const Tokenizer& tokenizer, const ChatTemplate& chat,
                      std::vector<ChatMessage> messages) {
  Sample found = find_last(tokenizer, chat, messages);
  const std::string answer = messages.back().content;
  if (!found.tokens.empty() || without_leading_space(answer).size() == answer.size()) return found;
  messages.back().content = without_leading_space(answer);
  found = find_last(tokenizer, chat, std::move(messages));
  std::string written;  // with the template's white space
  for (auto i = static_cast<size_t>(found.answer_start); i < found.tokens.size(); ++i)
    written += tokenizer.bytes(found.tokens[i]);
  return written.starts_with(answer) ? found : Sample{};
}

}  // namespace

std::vector<Sample> samples_of_conversation(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                            const std::string& id,
                                            const std::vector<ChatMessage>& messages,
                                            int64_t max_tokens, AnswerRefusals& refusals) {
  std::vector<Sample> out;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role != "assistant") continue;
    if (is_blank(messages[i].content)) {
      ++refusals.empty;
      continue;
    }
    Sample sample = sample_of_last(
        tokenizer, chat, {messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(i) + 1});
    sample.prompt_id = fmt::format("{}#{}", id, i);
    if (sample.tokens.empty())
      ++refusals.altered;
    else if (static_cast<int64_t>(sample.tokens.size()) > max_tokens)
      ++refusals.too_long;
    else
      out.push_back(std::move(sample));
  }
  return out;
}

/// What stands around a known question is the template's. Texts are compared, not ids: the first
/// word of a question may share a token with what stands before it. The ids decide in the end.
std::optional<std::string> question_of_prompt(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                              std::span<const TokenId> prompt) {
  constexpr std::string_view kKnown = "7 odd apples?";
  const std::string frame =
      tokenizer.decode(chat.encode(tokenizer, {{"user", std::string(kKnown)}}));
  const size_t place = frame.find(kKnown);
  if (place == std::string::npos) return std::nullopt;
  const std::string_view before = std::string_view(frame).substr(0, place);
  const std::string_view after = std::string_view(frame).substr(place + kKnown.size());
  const std::string text = tokenizer.decode(prompt);
  if (text.size() < before.size() + after.size() || !text.starts_with(before) ||
      !text.ends_with(after))
    return std::nullopt;
  std::string question = text.substr(before.size(), text.size() - before.size() - after.size());
  const std::vector<TokenId> again = chat.encode(tokenizer, {{"user", question}});
  if (again.size() != prompt.size() || !begins_with(prompt, again)) return std::nullopt;
  return question;
}

}  // namespace medusa
