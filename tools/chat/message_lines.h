// Lines -> messages: one line each, or several lines between """.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace medusa {

struct TypedMessage {
  std::string text;
  bool is_block = false;  // it stood between """: never a command
};

/// A line that begins with """ begins a message that goes on to the first line which ends with """;
/// text on the same lines belongs to it. Other lines are messages by themselves, blank ones none.
///
/// Thread safety: none.
class MessageLines {
 public:
  /// @param line  without its end.
  /// @returns     the message that the line completes.
  /// @throws UserError  the message is not UTF-8.
  std::optional<TypedMessage> add(std::string_view line);

  bool is_in_block() const { return block_.has_value(); }

  /// Forgets a message that was begun.
  void clear() { block_.reset(); }

  /// No more lines come.
  /// @throws UserError  inside a message.
  void finish() const;

 private:
  std::optional<std::string> block_;  // the lines of a message that was begun
};

}  // namespace medusa
