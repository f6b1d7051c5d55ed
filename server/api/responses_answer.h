// Answers of OpenAI's /v1/responses.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "server/api/answer_writer.h"
#include "server/api/single_answer.h"

namespace medusa {

/// Thread safety: none.
class ResponsesAnswer : public AnswerWriter {
 public:
  /// @param request  kept by reference.
  /// @param body     the request's JSON, of which the answer repeats a part.
  /// @param id       of the answer, hexadecimal.
  ResponsesAnswer(const CompletionRequest& request, const nlohmann::json& body,
                  const ServedModel& model, const std::string& id);

  std::string first_events() override;
  std::string events(size_t choice, const GenerationPiece& piece) override;
  std::string events(size_t choice, const GenerationEnd& end) override;
  std::string last_events() override;
  std::string failure_events(const ApiError& error) override;

  void add(size_t, const GenerationPiece& piece) override { answer_.add(piece); }
  void add(size_t, const GenerationEnd& end) override { answer_.add(end); }
  std::string whole() override;

 private:
  /// The object response.
  nlohmann::json response(const char* status) const;
  nlohmann::json item(size_t index, const char* status) const;
  std::string event(const char* type, nlohmann::json data);
  std::string part_events(const std::vector<AddedPart>& parts);
  std::string begin_text(size_t index);
  std::string end_text(const char* status);
  std::string call_events(size_t index);
  const char* status() const { return answer_.is_cut_off() ? "incomplete" : "completed"; }

  const CompletionRequest& request_;
  const nlohmann::json repeated_;  // of the request
  const ServedModel& model_;
  std::string id_;
  int64_t created_;  // seconds since 1970
  SingleAnswer answer_;
  std::optional<size_t> open_text_;  // the item whose end has not been told
  int64_t num_events_ = 0;
};

}  // namespace medusa
