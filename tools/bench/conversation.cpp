#include "tools/bench/conversation.h"

#include "base/interrupt.h"

namespace medusa {

std::vector<Answer> play_conversation(const Session& session, const Engine& engine,
                                      const Prompt& prompt, const AnswerOptions& options) {
  std::vector<ChatMessage> messages = prompt.messages;
  std::vector<Answer> answers;
  answers.push_back(answer(session, engine, session.encode(messages), options));
  for (const std::string& turn : prompt.later_turns) {
    messages.push_back({"assistant", answers.back().text});
    messages.push_back({"user", turn});
    std::vector<TokenId> tokens = session.encode(messages);
    if (static_cast<int64_t>(tokens.size()) >= session.context || interrupted()) break;
    answers.push_back(answer(session, engine, std::move(tokens), options));
  }
  return answers;
}

}  // namespace medusa
