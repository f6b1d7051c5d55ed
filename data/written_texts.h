// Texts that somebody else wrote, to learn from as they stand: documents and conversations.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/chat/conversations.h"
#include "data/dataset/answer_places.h"
#include "data/dataset/sample.h"
#include "data/tokenizer/tokenizer.h"

namespace medusa {

/// A document, or a conversation of which the answers are learnt.
struct WrittenText {
  std::string id;          // the file's own, else its name and line: "book:12"
  std::string document{};  // empty: it is a conversation
  std::vector<ChatMessage> conversation{};

  bool is_conversation() const { return document.empty(); }
};

struct WrittenTextSet {
  std::vector<WrittenText> texts;
  int64_t skipped = 0;  // conversations in which someone unknown speaks, or nobody answers
};

/// Reads a file by its name:
///   .jsonl, .ndjson  each line has "text", a document, or "messages" or "conversations", as
///                    read_conversations() takes them
///   .json            a list of such entries, or one
///   none             as .jsonl if an object comes first, as .json or lines of lists if a list of
///                    objects does, else one document: "-" is standard input
///   anything else    one document
/// Names may be in capitals. A byte order mark before the text is left out.
/// @throws UserError  with file:line or element: not JSON, none or several of these keys, an empty
///                    or mistyped one; not UTF-8; and if the file holds no text at all.
WrittenTextSet read_written_texts(const std::filesystem::path& file);

/// A document becomes pieces of at most max_tokens, each a sample of its own whose first token (the
/// model's bos where it expects one) is the prompt; a conversation one sample for each answer, as
/// samples_of_conversation() says. Without states.
/// @param max_tokens  of a sample; at least 2.
std::vector<Sample> samples_of_text(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                    const WrittenText& text, int64_t max_tokens,
                                    AnswerRefusals& refusals);

}  // namespace medusa
