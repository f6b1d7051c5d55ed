#include "data/dataset/answer_places.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "data/chat/conversations.h"
#include "data/tokenizer/white_space.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/data/byte_tokenizer.h"

namespace medusa {
namespace {

using Messages = std::vector<ChatMessage>;

class AnswerPlaces : public testing::Test {
 protected:
  std::vector<Sample> samples(const Messages& messages, int64_t max_tokens = 1000) {
    return samples_of_conversation(tokenizer_, chat_, "c", messages, max_tokens, refusals_);
  }
  std::string prompt(const Sample& sample) const {
    return tokenizer_.decode(
        std::span(sample.tokens).first(static_cast<size_t>(sample.answer_start)));
  }
  std::string answer(const Sample& sample) const {
    return tokenizer_.decode(
        std::span(sample.tokens).subspan(static_cast<size_t>(sample.answer_start)));
  }

  fixtures::ByteTokenizer tokenizer_;
  ChatTemplate chat_ = ChatTemplate::by_name("chatml");
  AnswerRefusals refusals_;
};

TEST_F(AnswerPlaces, EveryAnswerBecomesASampleBehindAllThatStandsBeforeIt) {
  const auto found = samples({{"system", "Be brief."},
                              {"user", "One?"},
                              {"assistant", "Yes."},
                              {"user", "Two?"},
                              {"assistant", "No, Yes."}});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].prompt_id, "c#2");
  EXPECT_EQ(answer(found[0]), "Yes.");
  EXPECT_EQ(prompt(found[0]),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nOne?<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(answer(found[1]), "No, Yes.");
  EXPECT_TRUE(prompt(found[1]).find("Yes.<|im_end|>\n<|im_start|>user\nTwo?") != std::string::npos);
  EXPECT_EQ(refusals_.total(), 0);
}

// The reference trainer looked for an answer's text from the front and so marked its first
// occurrence, also where that stood in a question.
TEST_F(AnswerPlaces, AnAnswerThatOccursTwiceIsTakenWhereItStands) {
  const auto found = samples({{"user", "Say Yes. Will you?"},
                              {"assistant", "Yes."},
                              {"user", "Again?"},
                              {"assistant", "Yes."}});
  ASSERT_EQ(found.size(), 2U);
  for (const Sample& sample : found) {
    EXPECT_EQ(answer(sample), "Yes.");
    EXPECT_TRUE(prompt(sample).ends_with("<|im_start|>assistant\n")) << prompt(sample);
  }
  EXPECT_NE(prompt(found[1]).find("Again?"), std::string::npos);
}

// Vicuna writes "ASSISTANT: Yes.", and what the model writes behind "ASSISTANT:" is " Yes", one
// token of most vocabularies.
TEST(AnswerPlacesOfVocabularies, EveryTemplatesAnswersAreFoundAndComeBackFromAnExport) {
  for (const char* vocabulary : {"llama.json", "gpt2.gguf", "llama3.json", "bpe.model"}) {
    const auto tokenizer = load_tokenizer(std::filesystem::path(MEDUSA_SOURCE_DIR) /
                                          "tests/golden/tokenizers" / vocabulary);
    for (const char* name :
         {"chatml", "llama-2", "llama-3", "zephyr", "vicuna", "mistral", "plain"}) {
      const std::string of = fmt::format("{} with {}", name, vocabulary);
      const ChatTemplate chat = ChatTemplate::by_name(name);
      AnswerRefusals refusals;
      const auto samples = [&](const Messages& messages) {
        return samples_of_conversation(*tokenizer, chat, "c", messages, 1000, refusals);
      };
      const auto found = samples({{"user", "One?"},
                                  {"assistant", "Yes. A city."},
                                  {"user", "Two?"},
                                  {"assistant", "No."}});
      ASSERT_EQ(found.size(), 2U) << of;
      const auto answer_of = [&](const Sample& sample) {
        const auto start = static_cast<size_t>(sample.answer_start);
        std::string answer;
        for (const TokenId id : std::span(sample.tokens).subspan(start))
          if (!tokenizer->is_special(id)) answer += tokenizer->bytes(id);
        return answer;
      };
      EXPECT_EQ(trim(answer_of(found[0])), "Yes. A city.") << of;
      EXPECT_EQ(trim(answer_of(found[1])), "No.") << of;
      const auto again = samples({{"user", "One?"}, {"assistant", answer_of(found[0])}});
      ASSERT_EQ(again.size(), 1U) << of;
      EXPECT_EQ(again[0].tokens, found[0].tokens) << of;
      EXPECT_EQ(again[0].answer_start, found[0].answer_start) << of;
    }
  }
}

TEST_F(AnswerPlaces, WhatCannotBeLocatedExactlyIsRefusedAndCounted) {
  EXPECT_TRUE(samples({{"user", "a"}, {"assistant", " \n"}}).empty());
  EXPECT_EQ(refusals_.empty, 1);
  EXPECT_TRUE(samples({{"assistant", "Hello"}}).empty()) << "nobody asked";
  EXPECT_EQ(refusals_.altered, 1);
  chat_ = ChatTemplate::by_name("llama-2");  // trims: the stored answer never stands there
  EXPECT_TRUE(samples({{"user", "a"}, {"assistant", "  Hello  "}}).empty());
  EXPECT_EQ(refusals_.altered, 2);
  chat_ = ChatTemplate::by_name("chatml");
  EXPECT_TRUE(samples({{"user", "a"}, {"assistant", "Hello"}}, 20).empty());
  EXPECT_EQ(refusals_.too_long, 1);
}

TEST_F(AnswerPlaces, WhiteSpaceOfAnAnswerIsNotReplacedByTheTemplates) {
  chat_ = ChatTemplate::by_name("plain");  // two line ends between messages
  EXPECT_EQ(samples({{"user", "a"}, {"assistant", "Hello"}}).size(), 1U);
  EXPECT_EQ(samples({{"user", "a"}, {"assistant", "\n\nHello"}}).size(), 1U);
  EXPECT_TRUE(samples({{"user", "a"}, {"assistant", " Hello"}}).empty());
  EXPECT_EQ(refusals_.altered, 1);
}

TEST_F(AnswerPlaces, AQuestionComesBackOutOfItsPrompt) {
  for (const char* name : {"chatml", "llama-3", "vicuna", "plain"}) {
    chat_ = ChatTemplate::by_name(name);
    for (const char* question : {"What is gravity?", "two  spaces", "A", "7 bees"}) {
      const auto ids = chat_.encode(tokenizer_, {{"user", question}});
      EXPECT_EQ(question_of_prompt(tokenizer_, chat_, ids), question) << name;
    }
    const auto two = chat_.encode(tokenizer_, {{"user", "a"}, {"assistant", "b"}, {"user", "c"}});
    const auto found = question_of_prompt(tokenizer_, chat_, two);
    if (found) {
      EXPECT_EQ(chat_.encode(tokenizer_, {{"user", *found}}), two) << name;
    }
  }
}

TEST(Conversations, BothKindsAreReadWithTheirAnswers) {
  const fixtures::TempFolder folder;
  write_file(folder / "a.jsonl",
             "{\"id\": 7, \"conversations\": [{\"from\": \"human\", \"value\": \"a \"}, {\"from\": "
             "\"gpt\", \"value\": \"b\"}]}\n\n"
             "{\"messages\": [{\"role\": \"user\", \"content\": \"c\"}, {\"role\": \"assistant\", "
             "\"content\": \"d\"}]}\n"
             "{\"conversations\": [{\"from\": \"human\", \"value\": \"nobody answers\"}]}\n"
             "{\"conversations\": [{\"from\": \"bard\", \"value\": \"who?\"}]}\n");
  const ConversationSet set = read_conversations(folder / "a.jsonl");
  ASSERT_EQ(set.conversations.size(), 2U);
  EXPECT_EQ(set.skipped, 2);
  EXPECT_EQ(set.conversations[0].id, "7");
  EXPECT_EQ(set.conversations[0].messages[0].content, "a ") << "white space is kept";
  EXPECT_EQ(set.conversations[1].id, "a:3");
  EXPECT_EQ(set.conversations[1].messages[1].role, "assistant");
  write_file(folder / "b.json",
             "[[{\"role\": \"user\", \"content\": \"c\"}, {\"role\": "
             "\"assistant\", \"content\": \"d\"}]]");
  EXPECT_EQ(read_conversations(folder / "b.json").conversations[0].id, "b:0");
  write_file(folder / "c.json",
             "{\"messages\": [{\"role\": \"user\", \"content\": \"c\"},\n {\"role\": "
             "\"assistant\", \"content\": \"d\"}]}");
  EXPECT_EQ(read_conversations(folder / "c.json").conversations[0].id, "c");
}

TEST(Conversations, ContentsMayBeListsOfTexts) {
  const fixtures::TempFolder folder;
  write_file(folder / "A.JSON",
             R"({"conversations": null, "messages": [{"role": "user", "content": "c"},
                {"role": "assistant", "content": [{"type": "text", "text": "d"},
                                                  {"type": "text", "text": "e"}]}]})");
  EXPECT_EQ(read_conversations(folder / "A.JSON").conversations[0].messages[1].content, "de");
}

TEST(Conversations, OtherFilesAreRefusedWithThePlace) {
  const fixtures::TempFolder folder;
  const auto error = [&](const std::string& text) {
    write_file(folder / "a.jsonl", text);
    std::string found = fixtures::error_text([&] { read_conversations(folder / "a.jsonl"); });
    const std::string path = (folder / "a.jsonl").string();
    const size_t at = found.find(path);
    return at == std::string::npos ? found : found.replace(at, path.size(), "<>");
  };
  EXPECT_EQ(
      error("\n{oops\n"),
      "<>:2: is not JSON (at byte 2 of the line), expected one JSON object per line; correct or "
      "remove it");
  EXPECT_EQ(error("{\"text\": \"a\"}\n"),
            "<>:1: has no conversation, expected 'conversations' or 'messages'; correct or remove "
            "the entry");
  EXPECT_EQ(error(R"({"messages": [], "conversations": []})"),
            "<>:1: has 'conversations' and 'messages', expected one of them; remove the other");
  EXPECT_EQ(error(R"({"messages": [{"role": "user", "content": [{"type": "audio"}]}]})"),
            "<>:1: message 0: content[0]: is of type 'audio', expected 'text'; remove the part");
  EXPECT_EQ(error(R"({"messages": [{"role": "user", "content": 3}]})"),
            "<>:1: message 0: 'content' is number, expected a text or a list of parts of type "
            "text; correct or remove it");
  EXPECT_EQ(error("{\"messages\": 3}\n"),
            "<>:1: the messages are number, expected a list of role and content; correct or remove "
            "the entry");
  EXPECT_EQ(error("{\"messages\": []}\n"),
            "<>: holds no conversation with an answer, expected at least one; give another file");
}

}  // namespace
}  // namespace medusa
