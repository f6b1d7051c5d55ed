// A request for text as all APIs have it; bodies of /v1/chat/completions and /v1/completions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "server/generation.h"
#include "server/request/grammar_fields.h"
#include "server/served_model.h"

namespace medusa {

struct CompletionRequest {
  bool is_chat = false;
  std::vector<GenerationRequest> choices;  // one for each answer that is wanted, in order
  int64_t choices_per_prompt = 1;
  std::optional<WantedGrammar> grammar;  // of all of them, still to be compiled
  std::vector<std::string> echoes;       // [choices] of completions: what stands before the answer
  int64_t prompt_tokens = 0;             // of all prompts, each counted once
  bool may_call = false;                 // tools: calls are looked for in the answers
  bool stream = false;
  bool include_usage = false;     // a last chunk with the usage
  bool continuous_usage = false;  // and one in each chunk
  bool return_token_ids = false;
  bool steps = false;                 // the tree of each step
  std::vector<std::string> warnings;  // fields that were ignored
};

/// @param text  that body was parsed from.
/// @throws ApiError  a field is wrong or cannot be followed; names it.
CompletionRequest read_chat_request(const nlohmann::json& body, std::string_view text,
                                    const ServedModel& model);
CompletionRequest read_completion_request(const nlohmann::json& body, std::string_view text,
                                          const ServedModel& model);

}  // namespace medusa
