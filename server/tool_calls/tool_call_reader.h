// The text of an answer -> what it says, and the calls that it asks for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/chat/conversations.h"

namespace medusa {

/// A piece of text, or a call.
struct AnswerPart {
  std::string text;
  std::optional<ToolCall> call{};
};

/// Finds <tool_call>{"name": …, "arguments": {…}}</tool_call> in a text that comes in pieces. A
/// call is given when it is complete. What only looks like one stays text, as it was written. White
/// space beside a call is dropped. However a text is cut into pieces, all parts together are the
/// same.
///
/// Thread safety: none.
class ToolCallReader {
 public:
  /// @param finds_calls  false: everything is text.
  /// @param id           calls get ids that begin with it, and are numbered.
  ToolCallReader(bool finds_calls, std::string id);

  std::vector<AnswerPart> add(std::string_view text);
  /// No more text comes: what was held back.
  std::vector<AnswerPart> finish();

  int num_calls() const { return num_calls_; }

 private:
  bool take_text(std::vector<AnswerPart>& out);
  bool take_call(std::vector<AnswerPart>& out);
  void say(std::string text, std::vector<AnswerPart>& out);

  bool finds_calls_;
  std::string id_;
  std::string held_;          // not given yet
  std::string spaces_;        // that stood before the call in held_
  bool in_call_ = false;      // held_ begins with a call's first mark
  bool beside_call_ = false;  // a call was the last part: white space is dropped
  int num_calls_ = 0;
};

}  // namespace medusa
