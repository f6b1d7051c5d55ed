#include "data/written_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "data/json.h"
#include "data/tokenizer/white_space.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

bool begins_with_object(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

void read_line(const Json& entry, const JsonLine& line, WrittenTextSet& set) {
  const auto document = find_json<std::string>(entry, "text", line.place);
  if (!document) {
    if (!entry.is_array() && !entry.contains("messages") && !entry.contains("conversations"))
      throw UserError(
          fmt::format("{}: has no text, expected one of 'text', 'messages', 'conversations'; "
                      "correct or remove it",
                      line.place));
    ConversationSet found;
    add_conversation(entry, line.place, line.id, found);
    for (Conversation& each : found.conversations)
      set.texts.push_back({each.id, {}, std::move(each.messages)});
    set.skipped += found.skipped;
    return;
  }
  if (is_blank(*document))
    throw UserError(
        fmt::format("{}: 'text' is empty, expected a document; correct or remove it", line.place));
  const auto id = find_json<Json>(entry, "id", line.place);
  set.texts.push_back({!id               ? line.id
                       : id->is_string() ? id->get<std::string>()
                                         : json_text(*id),
                       *document,
                       {}});
}

}  // namespace

WrittenTextSet read_written_texts(const fs::path& file) {
  WrittenTextSet set;
  std::string text = read_file_or_stream(file);
  if (file.extension() == ".jsonl" || (file == "-" && begins_with_object(text))) {
    parse_json_lines(text, file,
                     [&](const Json& entry, const JsonLine& line) { read_line(entry, line, set); });
  } else if (!is_valid_utf8(text)) {
    throw UserError(
        fmt::format("{}: is not UTF-8, expected a text, or .jsonl with 'text' in each line; give "
                    "another file",
                    file.string()));
  } else if (!is_blank(text)) {
    set.texts.push_back({file.stem().string(), std::move(text), {}});
  }
  if (set.texts.empty())
    throw UserError(fmt::format(
        "{}: holds no text{}, expected at least one; give another file", file.string(),
        set.skipped > 0 ? fmt::format(" ({} conversations were skipped)", set.skipped) : ""));
  return set;
}

std::vector<Sample> samples_of_text(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                    const WrittenText& text, int64_t max_tokens,
                                    AnswerRefusals& refusals) {
  MEDUSA_ASSERT(max_tokens >= 2, max_tokens);
  if (text.document.empty())
    return samples_of_conversation(tokenizer, chat, text.id, text.conversation, max_tokens,
                                   refusals);
  const std::vector<TokenId> tokens = tokenizer.encode(text.document, /*parse_special=*/false);
  std::vector<TokenId> start;  // of each piece
  if (tokenizer.adds_bos()) start.push_back(tokenizer.bos().value());
  const size_t room = static_cast<size_t>(max_tokens) - start.size();
  std::vector<Sample> samples;
  for (size_t begin = 0; begin < tokens.size(); begin += room) {
    const size_t end = std::min(begin + room, tokens.size());
    Sample sample{fmt::format("{}#{}", text.id, samples.size()), start, 1, {}};
    sample.tokens.insert(sample.tokens.end(), tokens.begin() + static_cast<int64_t>(begin),
                         tokens.begin() + static_cast<int64_t>(end));
    if (sample.tokens.size() >= 2) samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace medusa
