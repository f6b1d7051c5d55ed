// What is wrong with a client's request, in the shape that OpenAI's clients read.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>

namespace medusa {

/// A request that cannot be answered. what() is the message for the client.
class ApiError : public std::runtime_error {
 public:
  /// @param status   of HTTP: 400 for a wrong request, 404, 429, 500, 503, …
  /// @param message  in four parts: where, what was found, what was expected, what to do.
  /// @param field    of the request that is wrong; empty: none in particular.
  /// @param code     a word for programs, e.g. "context_length_exceeded"; empty: none.
  ApiError(int status, const std::string& message, std::string field = {}, std::string code = {});

  int status() const { return status_; }
  const std::string& field() const { return field_; }
  const std::string& code() const { return code_; }

  /// {"error": {"message", "type", "param", "code"}}
  nlohmann::json json() const;

 private:
  int status_;
  std::string field_, code_;
};

/// For what nobody expected to be thrown: 503 where memory has run out, else 500.
ApiError server_fault(const std::exception& error);

/// For a model that is not the one served: 404, "model_not_found".
ApiError unknown_model(const std::string& asked, const std::string& served);

/// For a prompt of as many tokens as the context, or more: 400, "context_length_exceeded".
ApiError long_prompt(int64_t tokens, int64_t context, std::string field);

}  // namespace medusa
