// The messages of a chat: texts, calls of tools and their results.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "data/chat/conversations.h"
#include "server/request/request_fields.h"

namespace medusa {

inline constexpr size_t kMostMessages = 10'000;  // of a request

/// Reads a list of messages in OpenAI's form. Contents may be texts or lists of text parts.
/// @param takes_tools  whether the model's template writes calls and results.
/// @throws ApiError  400: one of them is wrong; names it.
std::vector<ChatMessage> read_chat_messages(RequestFields& fields, const std::string& name,
                                            bool takes_tools);

/// The text of a content: itself, or its parts of one of these types one after the other; null
/// counts as no text. Nothing: it is something else.
std::optional<std::string> content_text(const nlohmann::json& content,
                                        const std::vector<std::string>& types);

/// The functions that a conversation's calls asked for.
///
/// Thread safety: none.
class CalledFunctions {
 public:
  /// The name of the function that the last call of this id before asked for; empty: there is none.
  /// @param before  as at the last time, with more messages behind it.
  std::string of(const std::vector<ChatMessage>& before, const std::string& id);

 private:
  std::unordered_map<std::string, std::string> names_;  // by the call's id
  size_t num_read_ = 0;                                 // messages whose calls are there
};

/// Says whether a text is JSON, an object, none of whose objects has more than kMostKeys.
bool is_json_object(std::string_view text);

}  // namespace medusa
