// Messages -> the text a chat model was trained on: by a built-in template with a name, or by the
// model's own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/chat/conversations.h"
#include "data/tokenizer/tokenizer.h"

namespace medusa {

class ModelChatTemplate;

/// What stands around one message.
struct TurnFrame {
  std::string before;
  std::string after;
};

/// Where a template puts the system message.
enum class SystemPlace {
  OwnTurn,
  FirstUserTurn,  // framed, before the text of the first user turn
  LastUserTurn,   // framed, before the text of the last user turn
};

/// Thread safety: const calls may run at the same time.
class ChatTemplate {
 public:
  /// chatml, llama-2, llama-3, zephyr, vicuna, mistral or plain.
  /// @throws UserError  another name.
  static ChatTemplate by_name(std::string_view name);

  /// The model's own template: the built-in that writes the same, else its Jinja source, run for
  /// each conversation.
  /// @throws UserError  the model brings none; its source cannot be read or refuses a question with
  ///                    an answer. Names the option that chooses a built-in.
  static ChatTemplate of_model(const Tokenizer& tokenizer);
  /// The same of a source that need not be the model's.
  static ChatTemplate of_source(const std::string& jinja, const Tokenizer& tokenizer);

  /// The built-in that a Jinja source looks like, with the default system message that the source
  /// writes; nullopt: none. Where the source asks for today's date, its own fallback stands.
  static std::optional<ChatTemplate> recognize(std::string_view jinja);

  /// Of a built-in; "the model's own" for a source that is run.
  const std::string& name() const { return name_; }
  /// Of a built-in.
  const std::string& default_system() const { return default_system_; }

  /// The text of a conversation, bos included where the template writes it.
  /// @param add_generation_prompt  end with what stands before an answer.
  /// @throws UserError  here and below: the model's source refuses the conversation.
  std::string render(const std::vector<ChatMessage>& messages, bool add_generation_prompt) const;

  /// The ids of the same text, ready for the answer. Only the template's own markers become special
  /// tokens; a message that spells one stays ordinary text. bos comes first if the model expects
  /// it.
  /// @param tools  that may be called: JSON, a list in the form of OpenAI's chats; empty: none.
  ///               Tools, calls and results need takes_tools().
  std::vector<TokenId> encode(const Tokenizer& tokenizer, const std::vector<ChatMessage>& messages,
                              const std::string& tools = {}) const;

  /// Whether the model's source writes tools, calls in the form
  /// <tool_call>{"name": …, "arguments": {…}}</tool_call>, and their results.
  bool takes_tools() const { return tools_source_ != nullptr; }

  /// The text up to where the user's first message starts, default system message included: what
  /// the model continues when it is to write the message itself.
  std::string user_prefix() const;

  /// The ids of user_prefix() and the first words of a user's message.
  std::vector<TokenId> encode_open_user_turn(const Tokenizer& tokenizer,
                                             std::string_view first_words) const;

  /// What ends a user's turn and what ends an answer, without white space: "<|im_end|>". Where it
  /// is no token of the vocabulary, it works as a stop string. Empty: nothing marks the end.
  const std::string& end_of_user_turn() const { return end_of_user_turn_; }
  const std::string& end_of_turn() const { return end_of_turn_; }

 private:
  struct Part {
    std::string text;
    bool from_template;  // markers in it count
  };
  std::vector<Part> parts(const std::vector<ChatMessage>& messages, bool add_generation_prompt,
                          bool open_user_turn) const;
  std::vector<TokenId> encode_parts(const Tokenizer& tokenizer,
                                    const std::vector<Part>& parts) const;

  bool writes_like(const ModelChatTemplate& source) const;
  bool writes_later_system_like(const ModelChatTemplate& source) const;

  std::shared_ptr<const ModelChatTemplate> source_;  // null: a built-in, described by what follows
  std::shared_ptr<const ModelChatTemplate>
      tools_source_;  // of conversations with tools; null: none
  std::string name_;
  std::vector<std::string> markers_;  // may be special tokens
  std::string start_;                 // of every conversation: the bos token, or nothing
  TurnFrame system_;
  TurnFrame user_;
  TurnFrame assistant_;
  std::string answer_;     // before an answer that is to be generated
  std::string separator_;  // between turns
  std::string end_of_user_turn_;
  std::string end_of_turn_;
  std::string default_system_;   // when the conversation brings none; empty: no system turn
  std::string system_preamble_;  // begins every system turn, and makes one if there is none
  SystemPlace system_place_ = SystemPlace::OwnTurn;
  bool later_system_ = false;  // system messages may stand anywhere, each a turn
  bool trims_ = false;         // white space around messages is dropped
};

}  // namespace medusa
