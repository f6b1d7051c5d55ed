// What the requests of all APIs have in common: sampling, logits, seed, ends, our own fields; and
// how generations are made of them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/completion_request.h"
#include "server/request/request_fields.h"
#include "server/tool_calls/tool_set.h"

namespace medusa {

inline constexpr size_t kMostStops = 16;      // stop strings of a request
inline constexpr size_t kLongestStop = 4096;  // bytes; each answer of a request has a copy
// Log-probabilities of a request, in its prompts and answers, and nodes of its steps' trees: they
// take some 200 bytes each, and are written at once.
inline constexpr int64_t kMostListed = 1'000'000;
inline constexpr size_t kMostEchoedBytes = 4 << 20;  // of a request, for the same reason

/// One request while it is read. An API reads its own fields from fields(), in any order, and adds
/// its prompts at last.
///
/// Thread safety: none.
class RequestReader {
 public:
  /// Reads the common fields.
  /// @param body  kept by reference.
  /// @throws ApiError  here and below: a field is wrong; names it.
  RequestReader(const nlohmann::json& body, const ServedModel& model);

  RequestFields& fields() { return fields_; }
  GenerationRequest& each() { return each_; }  // what all answers have
  CompletionRequest& out() { return out_; }

  /// Sets how long an answer may be. At least min_tokens. INT32_MAX: as long as there is room, for
  /// what is listed of its tokens, too.
  /// @param field  that says so, for errors.
  void set_max_tokens(int64_t tokens, const char* field = "max_tokens");

  /// The grammar of the answers: one of the object medusa, or the format of the API; with the calls
  /// of tools.
  void set_grammar(std::optional<WantedGrammar> format, const ToolSet& tools = {});

  /// Adds the answers to one prompt. The first has the seed itself, so that it is the text of that
  /// seed; the others have the seeds after it. All other fields have been read.
  void add_choices(const std::vector<TokenId>& prompt, int64_t count, const std::string& echo);
  /// Sets the prompt to a conversation.
  /// @param field  that the messages came in, for errors.
  void add_chat(const std::vector<ChatMessage>& messages, const ToolSet& tools, int64_t count,
                const char* field);

  CompletionRequest finish();

 private:
  int64_t listed_of_token() const;
  [[noreturn]] void refuse_listed();

  const ServedModel& model_;
  RequestFields fields_;
  std::optional<RequestFields> own_;  // the object medusa
  GenerationRequest each_;
  CompletionRequest out_;
  int64_t num_listed_ = 0;  // kMostListed says of what; of all answers so far
  size_t echoed_bytes_ = 0;
};

/// Refuses another model than the one that is served. Anthropic's clients name theirs whatever the
/// server has, so /v1/messages does not ask.
/// @throws ApiError  404, "model_not_found".
void expect_served_model(RequestFields& fields, const ServedModel& model);

/// Refuses a text of which so many bytes are surely more tokens than the context has: encoding it
/// would hold other requests up, keeping it for a slow reader would take memory.
/// @throws ApiError  400.
void expect_short_text(size_t bytes, const std::string& field, const ServedModel& model);

/// The prompt of a conversation.
/// @throws ApiError  400: the model has no template, or its template refuses it or has no place for
///                   the tools.
std::vector<TokenId> encode_chat(const ServedModel& model, const std::vector<ChatMessage>& messages,
                                 const ToolSet& tools, const char* field);

}  // namespace medusa
