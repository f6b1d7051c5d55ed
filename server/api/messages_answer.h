// Answers and errors of Anthropic's /v1/messages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "server/api/answer_writer.h"
#include "server/api/single_answer.h"

namespace medusa {

/// {"type": "error", "error": {"type", "message"}}
nlohmann::json messages_error(const ApiError& error);

/// Thread safety: none.
class MessagesAnswer : public AnswerWriter {
 public:
  /// @param request  kept by reference.
  /// @param id       of the answer, hexadecimal.
  MessagesAnswer(const CompletionRequest& request, const ServedModel& model, const std::string& id);

  std::string first_events() override;
  std::string events(size_t choice, const GenerationPiece& piece) override;
  std::string events(size_t choice, const GenerationEnd& end) override;
  std::string last_events() override;
  std::string failure_events(const ApiError& error) override;

  void add(size_t, const GenerationPiece& piece) override { answer_.add(piece); }
  void add(size_t, const GenerationEnd& end) override { answer_.add(end); }
  std::string whole() override;

 private:
  nlohmann::json message() const;
  nlohmann::json usage() const;
  nlohmann::json end_fields() const;
  nlohmann::json own_fields() const;
  std::string part_events(const std::vector<AddedPart>& parts);
  std::string end_text();

  const CompletionRequest& request_;
  const ServedModel& model_;
  std::string id_;
  SingleAnswer answer_;
  std::optional<size_t> open_text_;  // the block whose end has not been told
};

}  // namespace medusa
