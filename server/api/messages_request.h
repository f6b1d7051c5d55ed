// Bodies of Anthropic's /v1/messages.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "server/api/completion_request.h"

namespace medusa {

/// @param text  that body was parsed from.
/// @throws ApiError  a field is wrong or cannot be followed; names it.
CompletionRequest read_messages_request(const nlohmann::json& body, std::string_view text,
                                        const ServedModel& model);

/// The same for /v1/messages/count_tokens, which asks for no text and has no length.
CompletionRequest read_count_tokens_request(const nlohmann::json& body, std::string_view text,
                                            const ServedModel& model);

}  // namespace medusa
