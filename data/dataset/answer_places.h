// Where in a conversation's tokens the answers stand, and the way back: which words a prompt's
// tokens came from. Both by token ids, and only where the ids leave no doubt.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/chat/chat_template.h"
#include "data/dataset/sample.h"
#include "data/tokenizer/tokenizer.h"

namespace medusa {

/// Answers that cannot become samples, by reason.
struct AnswerRefusals {
  int64_t empty = 0;     // white space alone
  int64_t altered = 0;   // the template writes the answer or what stands before it otherwise
  int64_t too_long = 0;  // does not fit into max_tokens together with what stands before

  int64_t total() const { return empty + altered + too_long; }
};

/// One sample for each answer: everything before it is its prompt; its own tokens, and the token
/// that ends the turn where there is one, are the answer. Kept only if the template's ids of the
/// whole conversation begin with exactly the prompt's ids and then spell the answer byte by byte,
/// but for white space that the template writes before it: so training sees what decoding will.
/// @param max_tokens  of a whole sample.
std::vector<Sample> samples_of_conversation(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                            const std::string& id,
                                            const std::vector<ChatMessage>& messages,
                                            int64_t max_tokens, AnswerRefusals& refusals);

/// The user's message that a prompt's tokens are the template around, if they are that exactly.
std::optional<std::string> question_of_prompt(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                              std::span<const TokenId> prompt);

}  // namespace medusa
