#include "data/written_texts.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/file.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/data/byte_tokenizer.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::TempFolder;

WrittenTextSet read(const std::string& name, const std::string& text) {
  const TempFolder folder;
  write_file(folder / name, text);
  return read_written_texts(folder / name);
}

/// Without its folder.
std::string error_of(const std::string& name, const std::string& text) {
  const TempFolder folder;
  write_file(folder / name, text);
  const auto error = error_text([&] { read_written_texts(folder / name); });
  const std::string prefix = folder.path().string() + "/";
  return error.starts_with(prefix) ? error.substr(prefix.size()) : error;
}

TEST(WrittenTexts, AFileIsADocumentAndALineOfJsonAnything) {
  const auto book = read("book.txt", "One line.\n\nAnother.\n");
  ASSERT_EQ(book.texts.size(), 1U);
  EXPECT_EQ(book.texts[0].id, "book");
  EXPECT_EQ(book.texts[0].document, "One line.\n\nAnother.\n");
  const auto set =
      read("t.jsonl",
           "{\"id\": 7, \"text\": \"A tale\"}\n\n{\"text\": \"Another\", \"messages\": null}\n"
           "{\"id\": \"chat\", \"messages\": [{\"role\": \"user\", \"content\": \"Q\"}, {\"role\": "
           "\"assistant\", \"content\": \"A\"}]}\n"
           "{\"conversations\": [{\"from\": \"human\", \"value\": \"alone\"}]}\n");
  ASSERT_EQ(set.texts.size(), 3U);
  EXPECT_EQ(set.texts[0].id, "7");
  EXPECT_EQ(set.texts[1].id, "t:3");
  EXPECT_EQ(set.texts[1].document, "Another");
  EXPECT_EQ(set.texts[2].id, "chat");
  EXPECT_TRUE(set.texts[2].document.empty());
  EXPECT_EQ(set.texts[2].conversation.at(1).content, "A");
  EXPECT_EQ(set.skipped, 1) << "nobody answers";
}

TEST(WrittenTexts, NamesInCapitalsSayTheSame) {
  EXPECT_EQ(read("T.JSONL", "{\"text\": \"A tale\"}\n").texts.at(0).document, "A tale");
  EXPECT_EQ(read("T.Json", "[{\"text\": \"A tale\"}]").texts.at(0).document, "A tale");
}

TEST(WrittenTexts, AJsonFileHoldsAnEntryOrAListOfThem) {
  EXPECT_EQ(read("t.json", "{\"text\":\n\"A tale\"}").texts.at(0).document, "A tale");
  const std::string chat =
      R"([{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}])";
  const auto one = read("t.json", chat);
  ASSERT_EQ(one.texts.size(), 1U);
  EXPECT_EQ(one.texts[0].conversation.at(1).content, "A");
  const auto set = read("t.json", R"([{"text": "A tale"}, {"messages": )" + chat + "}, " + chat +
                                      R"(, {"id": "b", "text": "B"}])");
  ASSERT_EQ(set.texts.size(), 4U);
  EXPECT_EQ(set.texts[0].id, "t:0");
  EXPECT_EQ(set.texts[0].document, "A tale");
  EXPECT_EQ(set.texts[1].conversation.size(), 2U);
  EXPECT_EQ(set.texts[2].id, "t:2");
  EXPECT_EQ(set.texts[3].id, "b");
  EXPECT_EQ(error_of("t.json", "\"A tale\""),
            "t.json: holds string, expected an object with 'text', 'messages' or "
            "'conversations', or a list of such; name a text that is no JSON .txt");
  EXPECT_EQ(error_of("t.json", "[{\"text\": \"a\"}, \"b\"]"),
            "t.json: element 1: has no text, expected one of 'text', 'messages', "
            "'conversations'; correct or remove it");
}

TEST(WrittenTexts, AByteOrderMarkIsNoText) {
  EXPECT_EQ(read("t.txt", "\xEF\xBB\xBFOne.").texts.at(0).document, "One.");
  EXPECT_EQ(read("t.jsonl", "\xEF\xBB\xBF{\"text\": \"One.\"}").texts.at(0).document, "One.");
  EXPECT_EQ(error_of("t.txt", "\xEF\xBB\xBF"),
            "t.txt: holds no text, expected at least one; give another file");
}

TEST(WrittenTexts, OfSeveralTextsInAnEntryNoneIsChosen) {
  EXPECT_EQ(error_of("t.jsonl", R"({"text": "a", "messages": []})"),
            "t.jsonl:1: has 'text' and 'messages', expected one of them; remove the other from "
            "each entry");
  EXPECT_EQ(error_of("t.jsonl", R"({"messages": [], "conversations": []})"),
            "t.jsonl:1: has 'messages' and 'conversations', expected one of them; remove the other "
            "from each entry");
}

TEST(WrittenTexts, WhatIsNoTextIsRefused) {
  EXPECT_EQ(error_of("a.txt", " \n"),
            "a.txt: holds no text, expected at least one; give another file");
  EXPECT_EQ(error_of("a.txt", "\xFFtext"),
            "a.txt: is not UTF-8, expected a text, or .jsonl with 'text' in each line; give "
            "another file");
  EXPECT_EQ(error_of("a.jsonl", "{\"text\": \" \"}\n"),
            "a.jsonl:1: 'text' is empty, expected a document; correct or remove it");
  EXPECT_EQ(error_of("a.jsonl", "{\"text\": \"a\"}\n{\"text\": 3}\n").find("a.jsonl:2: 'text' is"),
            0U);
  const std::string long_id = ", \"id\": \"" + std::string(1025, 'a') + "\"}\n";
  for (const std::string entry :
       {"{\"text\": \"a\"", "{\"messages\": [{\"role\": \"user\", \"content\": \"b\"}]"})
    EXPECT_EQ(error_of("a.jsonl", entry + long_id),
              "a.jsonl:1: 'id' has 1025 bytes, expected at most 1024; shorten it");
  for (const char* line : {"{\"story\": \"a\"}\n", "7\n"})
    EXPECT_EQ(error_of("a.jsonl", line),
              "a.jsonl:1: has no text, expected one of 'text', 'messages', 'conversations'; "
              "correct or remove it");
  EXPECT_EQ(error_of("a.jsonl", "{\"conversations\": [{\"from\": \"human\", \"value\": \"b\"}]}\n"),
            "a.jsonl: holds no text (1 conversations were skipped), expected at least one; give "
            "another file");
}

TEST(WrittenTexts, WithoutANameJsonIsToldByHowItBegins) {
  const std::string line =
      "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}]\n";
  for (const std::string& text : {std::string("[{\"text\": \"a\"}, {\"text\": \"b\"}]"),
                                  std::string("\n[\n {\"text\": \"a\"},\n {\"text\": \"b\"}\n]\n"),
                                  std::string("{\"text\": \"a\"}\n{\"text\": \"b\"}\n"),
                                  line + line, "[" + line + ",\n" + line + "]"})
    EXPECT_EQ(read("texts", text).texts.size(), 2U) << text;
  EXPECT_TRUE(read("texts", line).texts.at(0).is_conversation());
  for (const std::string text :
       {"[1] A footnote", "[[Category:Cats]]", "Text\n[{\"text\": \"a\"}]"}) {
    const auto found = read("texts", text).texts;
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].document, text);
  }
  EXPECT_EQ(error_of("texts", "[{\"text\": \"a\"},\n"),
            "texts: is not JSON (at byte 17), expected a JSON file; copy or download it again");
  EXPECT_EQ(read("texts.ndjson", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n").texts.size(), 2U);
}

TEST(WrittenTexts, PiecesOfADocumentAreItsTokensInOrder) {
  const fixtures::ByteTokenizer tokenizer;
  const std::string text = "The first piece and all others.";
  AnswerRefusals refusals;
  const auto pieces = samples_of_text(tokenizer, ChatTemplate(), {"t", text, {}}, 8, refusals);
  std::string joined;
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i].prompt_id, "t#" + std::to_string(i));
    EXPECT_EQ(pieces[i].answer_start, 1);
    EXPECT_GE(pieces[i].tokens.size(), 2U);
    EXPECT_LE(pieces[i].tokens.size(), 8U);
    joined += tokenizer.decode(pieces[i].tokens);
  }
  EXPECT_EQ(pieces.size(), (text.size() + 7) / 8);
  EXPECT_EQ(joined, text);
  EXPECT_TRUE(samples_of_text(tokenizer, ChatTemplate(), {"t", "x", {}}, 8, refusals).empty())
      << "one token teaches nothing";
}

}  // namespace
}  // namespace medusa
