// Questions with all their turns, answered by one method: the model's own answers go into the next
// prompts.
#pragma once

#include <cstdint>
#include <vector>

#include "data/prompts.h"
#include "runtime/answer.h"

namespace medusa {

struct SeededPrompt {
  const Prompt* prompt = nullptr;  // not owned
  uint64_t seed = 1;
};

/// Answers the first turns of all at the same time, then the second ones, and so on, through the
/// chat template. A conversation ends early where a prompt no longer fits into the context, and all
/// when interrupted.
/// @returns  [conversations][turns], at least one turn each.
/// @throws UserError  a first prompt does not fit.
std::vector<std::vector<Answer>> run_conversations(const Model& model, Decoder& decoder,
                                                   const std::vector<SeededPrompt>& conversations,
                                                   const AnswerOptions& options);

}  // namespace medusa
