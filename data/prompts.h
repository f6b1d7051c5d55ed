// Reads prompts: .jsonl, plain lines, ShareGPT .json, .json lists of messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/chat/conversations.h"

namespace medusa {

struct Prompt {
  std::string id;                        // the file's own, else its name and line: "bench:12"
  std::string category;                  // as the file says, or empty
  std::vector<ChatMessage> messages;     // ends with the user's message that is to be answered
  std::vector<std::string> later_turns;  // what the user says next, after each answer
};

struct PromptSet {
  std::vector<Prompt> prompts;
  int64_t skipped = 0;  // ShareGPT conversations in which no user speaks, or someone unknown does

  auto begin() const { return prompts.begin(); }
  auto end() const { return prompts.end(); }
};

/// Each line of a .jsonl file, or each element of a .json list, has one of
///   turns          ["first message", "second", …] of the user (the answers are left to the model)
///   messages       [{"role", "content"}, …]; answers in between are kept, those at the end
///                  dropped; a content may be a list of parts of type text
///   text           the user's message
///   prompt         the same, or a list as messages
///   instruction    the same, with "input", if there is one, below it
///   conversations  ShareGPT's [{"from", "value"}, …]: read as turns, its answers are dropped
/// and may have id, category and system. An element that is itself a list counts as messages.
/// Each line of a .txt file, and of a standard input ("-") that does not begin as JSON, is the
/// user's message. Where no name tells ("-", /dev/fd/63) a list is read as that of a .json file.
/// Blank lines are passed over.
/// @throws UserError  with file:line (or file and element): not JSON, no prompt in it, an empty or
///                    mistyped one; and if the file holds no prompt at all.
PromptSet read_prompts(const std::filesystem::path& file);

/// The keys above: an object with one of them is a prompt.
inline constexpr const char* kPromptKeys[] = {"prompt",   "text",  "instruction",
                                              "messages", "turns", "conversations"};

}  // namespace medusa
