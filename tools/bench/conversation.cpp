#include "tools/bench/conversation.h"

#include <utility>

#include "base/interrupt.h"

namespace medusa {

std::vector<std::vector<Answer>> run_conversations(const Model& model, Decoder& decoder,
                                                   const std::vector<SeededPrompt>& conversations,
                                                   const AnswerOptions& options) {
  std::vector<std::vector<Answer>> answers(conversations.size());
  std::vector<std::vector<ChatMessage>> messages;
  for (const SeededPrompt& each : conversations) messages.push_back(each.prompt->messages);
  for (size_t turn = 0;; ++turn) {
    std::vector<size_t> asked;
    std::vector<AnswerRequest> requests;
    for (size_t i = 0; i < conversations.size(); ++i) {
      if (answers[i].size() < turn) continue;  // it has ended
      if (turn > 0) {
        const std::vector<std::string>& later = conversations[i].prompt->later_turns;
        if (turn > later.size()) continue;
        messages[i].push_back({"assistant", answers[i].back().text});
        messages[i].push_back({"user", later[turn - 1]});
      }
      std::vector<TokenId> tokens = model.encode(messages[i]);
      if (turn > 0 && static_cast<int64_t>(tokens.size()) >= model.context) continue;
      asked.push_back(i);
      requests.push_back({std::move(tokens), conversations[i].seed});
    }
    if (asked.empty() || (turn > 0 && interrupted())) return answers;
    std::vector<Answer> given = answer_together(model, decoder, requests, options);
    for (size_t k = 0; k < asked.size(); ++k) answers[asked[k]].push_back(std::move(given[k]));
  }
}

}  // namespace medusa
