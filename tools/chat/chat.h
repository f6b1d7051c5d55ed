// The chat itself: messages in, answers out, and what the slash commands do.
#pragma once

#include <cstdint>
#include <string>

#include "tools/chat/answer_screen.h"
#include "tools/chat/chat_model.h"
#include "tools/chat/dialogue.h"
#include "tools/chat/message_source.h"
#include "tools/chat/slash_commands.h"

namespace medusa {

struct ChatOptions {
  std::string system;  // message before the first; empty: the template's own
  uint64_t seed = 1;
  bool json = false;  // an object for each answer, on a line of its own
};

/// Answers go to stdout; everything else that is said, to stderr.
///
/// Thread safety: none.
class Chat {
 public:
  /// @param model  kept by reference.
  Chat(ChatModel& model, const ChatOptions& options, ScreenAbilities abilities);

  /// Reads messages and answers until no more come. A person is told what is wrong and goes on.
  /// @throws UserError  of a pipe: the first mistake.
  void run(MessageSource& source);

 private:
  /// @returns false: leave.
  bool take(const TypedMessage& message);
  bool obey(const GivenSlashCommand& given);
  void ask(const std::string& question);
  void answer_again();
  ChatAnswer answer(const std::string& question, uint64_t seed);
  void print_answer_json(const std::string& question, const ChatAnswer& answer) const;
  void note_end(const ChatAnswer& answer) const;
  void set_temperature(const std::string& text);
  void set_drafter(const std::string& name);
  void note_stats() const;

  ChatModel& model_;
  const bool json_;
  const ScreenAbilities abilities_;
  bool is_person_ = false;
  Dialogue dialogue_;
  uint64_t seed_;             // of the next answer
  uint64_t times_again_ = 0;  // that the last message was answered again
  DecodeStats all_;           // of all answers
  double seconds_ = 0;        // that they took, without their prompts
  int64_t room_used_ = 0;     // tokens of the last prompt and its answer
};

}  // namespace medusa
