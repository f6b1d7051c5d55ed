// Generations -> the answers of /v1/chat/completions and /v1/completions, whole or as chunks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/tokenizer/text_stream.h"
#include "server/api/answer_writer.h"
#include "server/api/completion_request.h"
#include "server/tool_calls/tool_call_reader.h"

namespace medusa {

/// Thread safety: none.
class CompletionAnswer : public AnswerWriter {
 public:
  /// @param request  kept by reference.
  /// @param id       of the answer, hexadecimal.
  CompletionAnswer(const CompletionRequest& request, const ServedModel& model, std::string id);

  /// A chunk for each choice: a chat's role, or an echo that waits for no log-probabilities.
  std::string first_events() override;
  std::string events(size_t choice, const GenerationPiece& piece) override;
  std::string events(size_t choice, const GenerationEnd& end) override;
  /// The chunk with the usage of all, if it was asked for, and [DONE].
  std::string last_events() override;
  std::string failure_events(const ApiError& error) override;

  void add(size_t choice, const GenerationPiece& piece) override;
  void add(size_t choice, const GenerationEnd& end) override;
  std::string whole() override;

 private:
  struct Choice {
    Choice(const Tokenizer& tokenizer, bool finds_calls, std::string call_id)
        : reader(finds_calls, std::move(call_id)), before(tokenizer) {}
    ToolCallReader reader;
    std::string text;
    nlohmann::json calls;  // as OpenAI gives them; null: none
    std::vector<GeneratedToken> prompt, tokens;
    TextStream before;   // of the answer's tokens whose log-probabilities are written
    int64_t offset = 0;  // its characters, and those of the echo
    std::vector<StepTrace> steps;
    std::string reason;
  };
  nlohmann::json head(bool chunk) const;
  void take(Choice& choice, std::vector<AnswerPart> parts);
  nlohmann::json logprobs(size_t choice, const std::vector<GeneratedToken>& prompt,
                          const std::vector<GeneratedToken>& tokens);
  nlohmann::json usage() const;
  std::string first_chunk(size_t choice);
  std::string event(nlohmann::json choice, bool with_usage);
  void count(const GenerationPiece& piece);
  void count(size_t choice, const DecodeStats& stats);
  nlohmann::json acceptance() const;

  const CompletionRequest& request_;
  const ServedModel& model_;
  std::string id_;
  int64_t created_;  // seconds since 1970
  std::vector<Choice> choices_;
  /// Of each prompt, the tokens that none of its answers computed; none: no answer has ended.
  std::vector<std::optional<int64_t>> cached_tokens_;
  bool warned_ = false;       // in a stream
  bool told_prompt_ = false;  // of a chat, in a stream: its ids
  int64_t num_tokens_ = 0;
  std::vector<int64_t> accepted_, drafted_;  // candidates of each step, where one answer is traced
  DecodeStats total_;
};

}  // namespace medusa
