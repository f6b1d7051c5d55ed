// The JSON of a call as a model wrote it.
#pragma once

#include <optional>
#include <string_view>

#include "data/chat/conversations.h"

namespace medusa {

/// Reads {"name": …, "arguments": {…}}; other keys are passed over. The arguments are the model's
/// own bytes, but for what RFC 8259 allows and parsers refuse: half of a surrogate pair (section
/// 8.2) becomes U+FFFD, a number beyond a double's range (section 6) the largest double. Without
/// arguments they are {}.
/// @returns  nothing: it is no such object, or nests more than 100 deep. The call has no id yet.
std::optional<ToolCall> read_call(std::string_view written);

}  // namespace medusa
