// A model's own chat template, run as transformers would run it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/chat/conversations.h"
#include "data/chat/jinja/template.h"
#include "data/tokenizer/tokenizer.h"

namespace medusa {

/// Templates see messages, bos_token, eos_token, add_generation_prompt, tools (none without some),
/// and documents as none. Where one asks for the date it is always 26 July 2024, the fallback of
/// Llama's templates: the same prompt gives the same tokens on every day.
///
/// Thread safety: const calls may run at the same time.
class ModelChatTemplate {
 public:
  /// @throws UserError  with the line: the source cannot be read.
  ModelChatTemplate(std::string_view jinja, const Tokenizer& tokenizer);

  /// The text of a conversation.
  /// @param tools  that may be called: JSON, a list in the form of OpenAI's chats; empty: none.
  /// @throws UserError  the template refuses the conversation, or fails.
  std::string render(const std::vector<ChatMessage>& messages, bool add_generation_prompt,
                     const std::string& tools = {}) const;

  /// The ids of render(messages, true, tools). A message or a tool that spells a special token
  /// stays ordinary text.
  std::vector<TokenId> encode(const Tokenizer& tokenizer, const std::vector<ChatMessage>& messages,
                              const std::string& tools = {}) const;

  /// Whether it writes tools, calls as <tool_call>{"name": …, "arguments": {…}}</tool_call> and
  /// their results, and the tokenizer shows the marks of a call.
  bool takes_tools(const Tokenizer& tokenizer) const;

  /// The text up to where the user's first message starts.
  /// @throws UserError  the template does not write a user's text exactly once.
  std::string user_prefix() const;
  std::vector<TokenId> encode_open_user_turn(const Tokenizer& tokenizer,
                                             std::string_view first_words) const;

  /// What stands behind the user's text and behind the answer: the special token, else the words,
  /// without white space. Empty: nothing, or the template changes its messages.
  struct Ends {
    std::string of_user_turn;
    std::string of_turn;
  };
  /// @throws UserError  the template refuses a question with an answer.
  Ends find_ends(const Tokenizer& tokenizer) const;

 private:
  jinja::Template template_;
  std::string bos_;
  std::string eos_;
};

}  // namespace medusa
