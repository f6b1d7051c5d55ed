#include "data/written_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "data/json.h"
#include "data/text_file.h"
#include "data/tokenizer/white_space.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

/// Whether an object comes first, or a list of one; "[1] A footnote" is a document.
bool begins_with_entry(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n[");
  return first != std::string::npos && text[first] == '{';
}

/// The key that says what the entry is.
std::string key_of_text(const Json& entry, const std::string& place) {
  std::string found;
  for (const char* key : {"text", "messages", "conversations"}) {
    if (!find_json<Json>(entry, key, place)) continue;
    if (!found.empty())  // which of the two is to be learnt cannot be told
      throw UserError(
          fmt::format("{}: has '{}' and '{}', expected one of them; remove the other from each "
                      "entry",
                      place, found, key));
    found = key;
  }
  if (found.empty())
    throw UserError(
        fmt::format("{}: has no text, expected one of 'text', 'messages', 'conversations'; "
                    "correct or remove it",
                    place));
  return found;
}

void add_conversation_text(const Json& entry, const JsonLine& line, WrittenTextSet& set) {
  ConversationSet found;
  add_conversation(entry, line.place, line.id, found);
  for (Conversation& each : found.conversations)
    set.texts.push_back({each.id, {}, std::move(each.messages)});
  set.skipped += found.skipped;
}

void read_text_entry(const Json& entry, const JsonLine& line, WrittenTextSet& set) {
  if (entry.is_array() || key_of_text(entry, line.place) != "text")
    return add_conversation_text(entry, line, set);
  auto document = need_json<std::string>(entry, "text", line.place);
  if (is_blank(document))
    throw UserError(
        fmt::format("{}: 'text' is empty, expected a document; correct or remove it", line.place));
  set.texts.push_back({entry_id(entry, line.place, line.id), std::move(document), {}});
}

/// One entry, or a list of them.
void read_json_texts(const Json& root, const fs::path& file, WrittenTextSet& set) {
  const std::string name = file.stem().string();
  const bool is_one = root.is_object() || (root.is_array() && !root.empty() &&
                                           root[0].is_object() && root[0].contains("role"));
  if (is_one) return read_text_entry(root, {file.string(), name}, set);
  if (!root.is_array())
    throw UserError(
        fmt::format("{}: holds {}, expected an object with 'text', 'messages' or 'conversations', "
                    "or a list of such; name a text that is no JSON .txt",
                    file.string(), root.type_name()));
  for (size_t i = 0; i < root.size(); ++i)
    read_text_entry(
        root[i], {fmt::format("{}: element {}", file.string(), i), fmt::format("{}:{}", name, i)},
        set);
}

/// Everything that is no JSON.
void read_document(std::string text, const fs::path& file, WrittenTextSet& set) {
  if (!is_valid_utf8(text))
    throw UserError(
        fmt::format("{}: is not UTF-8, expected a text, or .jsonl with 'text' in each line; give "
                    "another file",
                    file.string()));
  if (!is_blank(text)) set.texts.push_back({file.stem().string(), std::move(text), {}});
}

}  // namespace

WrittenTextSet read_written_texts(const fs::path& file) {
  WrittenTextSet set;
  const std::string extension = lower_extension(file);
  if (extension == ".json") {
    read_json_texts(read_json_file(file), file, set);
  } else {
    std::string text = read_text(file);
    const bool is_nameless_json = extension.empty() && begins_with_entry(text);
    if (is_nameless_json && is_json_list(text))
      read_json_texts(parse_json_text(text, file), file, set);
    else if (extension == ".jsonl" || extension == ".ndjson" || is_nameless_json)
      parse_json_lines(text, file, [&](const Json& entry, const JsonLine& line) {
        read_text_entry(entry, line, set);
      });
    else
      read_document(std::move(text), file, set);
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
  if (text.is_conversation())
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
