#include "tools/chat/message_lines.h"

#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace medusa {
namespace {

constexpr std::string_view kBlockMark = R"(""")";

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

TypedMessage checked_message(TypedMessage message) {
  if (is_valid_utf8(message.text)) return message;
  throw UserError(
      "the message is not UTF-8, expected text in it; set the terminal to UTF-8, or convert what "
      "comes through the pipe");
}

}  // namespace

std::optional<TypedMessage> MessageLines::add(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!block_) {
    if (is_blank(line)) return std::nullopt;
    if (!line.starts_with(kBlockMark)) return checked_message({std::string(line)});
    line.remove_prefix(kBlockMark.size());
    block_.emplace();
    if (line.empty()) return std::nullopt;  // the mark stands alone: the text begins below it
  } else if (!block_->empty()) {
    *block_ += '\n';
  }
  const bool ends = line.ends_with(kBlockMark);
  if (ends) line.remove_suffix(kBlockMark.size());
  *block_ += line;
  if (!ends) return std::nullopt;
  std::string text = *std::exchange(block_, std::nullopt);
  if (line.empty() && text.ends_with('\n')) text.pop_back();  // the mark stands alone
  if (is_blank(text)) return std::nullopt;
  return checked_message({std::move(text), true});
}

void MessageLines::finish() const {
  if (!block_) return;
  throw UserError(
      "the input ends inside a message that \"\"\" began, expected \"\"\" at the end of its last "
      "line; add it");
}

}  // namespace medusa
