#include "server/api/api_error.h"

#include <fmt/format.h>

#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/shown_text.h"

namespace medusa {
namespace {

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

ApiError::ApiError(int status, const std::string& message, std::string field, std::string code)
    : std::runtime_error(shown_text(message)),
      status_(status),
      field_(std::move(field)),
      code_(std::move(code)) {}

nlohmann::json ApiError::json() const {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
  };
  return {{"error",
           {{"message", what()},
            {"type", type_of(status_)},
            {"param", or_null(field_)},
            {"code", or_null(code_)}}}};
}

ApiError server_fault(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {503,
            "the server has no memory left for this answer, expected some; ask again later, or for "
            "less at once",
            "", "out_of_memory"};
  return {500, fmt::format("{}: this is a bug, please report it", error.what())};
}

ApiError unknown_model(const std::string& asked, const std::string& served) {
  constexpr size_t kMostShown = 100;  // bytes
  return {404,
          fmt::format("model: '{}' is not served here, expected '{}'; name that one, or leave the "
                      "field out",
                      shown_text(asked.substr(0, kMostShown)), served),
          "model", "model_not_found"};
}

ApiError long_prompt(int64_t tokens, int64_t context, std::string field) {
  return {
      400,
      fmt::format("the prompt has {} tokens, expected fewer than the context of {}; shorten it, "
                  "or start the server with a larger --context if the model was trained for "
                  "more",
                  tokens, context),
      std::move(field), "context_length_exceeded"};
}

}  // namespace medusa
