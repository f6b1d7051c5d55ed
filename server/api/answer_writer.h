// Writes a request's answer in the form of an API: as a whole, or as a stream of events.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "server/api/api_error.h"
#include "server/generation.h"

namespace medusa {

/// Either events or a whole answer. Events are lines of a stream, the empty line behind each
/// included; empty: there is nothing to say yet.
///
/// Thread safety: none.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  virtual std::string first_events() = 0;
  virtual std::string events(size_t choice, const GenerationPiece& piece) = 0;
  virtual std::string events(size_t choice, const GenerationEnd& end) = 0;
  virtual std::string last_events() = 0;
  /// Gives the events that end a stream that failed.
  virtual std::string failure_events(const ApiError& error) = 0;

  /// Takes a piece of what a whole answer is made of.
  virtual void add(size_t choice, const GenerationPiece& piece) = 0;
  virtual void add(size_t choice, const GenerationEnd& end) = 0;
  virtual std::string whole() = 0;
};

/// Says how many drafts stood, in the shape of vLLM's metrics.speculative_decoding: entry n of the
/// histogram counts steps that accepted n candidates, and num_spec_tokens is the depth of the
/// deepest tree, with which the histogram ends.
nlohmann::json acceptance_json(const DecodeStats& stats);

/// One event of a stream: "data: …" and an empty line.
std::string sent_event(const nlohmann::json& data);
/// Makes an event with a name, which is its field type.
std::string named_event(const nlohmann::json& data);

}  // namespace medusa
