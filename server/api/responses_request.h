// Bodies of OpenAI's /v1/responses.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "server/api/completion_request.h"

namespace medusa {

/// @param text  that body was parsed from.
/// @throws ApiError  a field is wrong or cannot be followed; names it.
CompletionRequest read_responses_request(const nlohmann::json& body, std::string_view text,
                                         const ServedModel& model);

}  // namespace medusa
