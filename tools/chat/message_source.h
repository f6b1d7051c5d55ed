// Where a chat's messages come from: a person at a terminal, or a pipe.
#pragma once

#include <memory>
#include <optional>

#include "tools/chat/message_lines.h"

namespace medusa {

class MessageSource {
 public:
  virtual ~MessageSource() = default;

  /// The next message; nothing: no more come, or SIGTERM came.
  /// @throws UserError    a message is not UTF-8; a pipe ends inside one, or cannot be read.
  /// @throws Interrupted  SIGINT or SIGTERM came while a pipe was read.
  virtual std::optional<TypedMessage> next() = 0;

  /// A person reads the errors and goes on; a pipe's first error ends the chat, but for one of
  /// /drafter: who drafts decides how fast answers come.
  virtual bool is_person() const = 0;
};

/// Standard input's: with line editing and history where it is a terminal. Ctrl-C clears what is
/// typed there.
std::unique_ptr<MessageSource> open_message_source();

}  // namespace medusa
