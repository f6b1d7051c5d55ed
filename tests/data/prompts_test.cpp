#include "data/prompts.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::TempFolder;

PromptSet read(const std::string& name, const std::string& text) {
  const TempFolder folder;
  write_file(folder / name, text);
  return read_prompts(folder / name);
}

/// The error of a file with this text, without its folder.
std::string error_of(const std::string& name, const std::string& text) {
  const TempFolder folder;
  write_file(folder / name, text);
  const auto error = error_text([&] { read_prompts(folder / name); });
  const std::string prefix = folder.path().string() + "/";
  return error.starts_with(prefix) ? error.substr(prefix.size()) : error;
}

std::string flat(const Prompt& prompt) {
  std::string text = prompt.id + "|" + prompt.category;
  for (const ChatMessage& each : prompt.messages) text += "|" + each.role + ":" + each.content;
  for (const auto& turn : prompt.later_turns) text += "|later:" + turn;
  return text;
}

TEST(Prompts, ReadsEveryKindOfLine) {
  const auto set = read("p.jsonl",
                        "{\"id\": \"a\", \"category\": \"qa\", \"turns\": [\"One\", \"Two\"]}\n"
                        "\n"
                        "{\"id\": 7, \"text\": \"Hello\", \"system\": \"Be kind\"}\r\n"
                        "{\"messages\": [{\"role\": \"system\", \"content\": \"S\"}, {\"role\": "
                        "\"user\", \"content\": \"U\"}, {\"role\": \"assistant\", \"content\": "
                        "\"A\"}, {\"role\": \"user\", \"content\": \"V\"}, {\"role\": "
                        "\"assistant\", \"content\": \"B\"}]}");
  ASSERT_EQ(set.prompts.size(), 3U);
  EXPECT_EQ(flat(set.prompts[0]), "a|qa|user:One|later:Two");
  EXPECT_EQ(flat(set.prompts[1]), "7||system:Be kind|user:Hello");
  EXPECT_EQ(flat(set.prompts[2]), "p:4||system:S|user:U|assistant:A|user:V");
  EXPECT_EQ(set.skipped, 0);
}

TEST(Prompts, ReadsTheKeysOfOtherDataSets) {
  const auto set = read("p.jsonl",
                        "{\"prompt\": \"One\", \"answer\": \"left out\"}\n"
                        "{\"prompt\": [{\"role\": \"user\", \"content\": \"Two\"}]}\n"
                        "{\"instruction\": \"Sum up\", \"input\": \"\", \"output\": \"x\"}\n"
                        "{\"instruction\": \"Sum up\", \"input\": \"A tale\"}\n");
  ASSERT_EQ(set.prompts.size(), 4U);
  EXPECT_EQ(flat(set.prompts[0]), "p:1||user:One");
  EXPECT_EQ(flat(set.prompts[1]), "p:2||user:Two");
  EXPECT_EQ(flat(set.prompts[2]), "p:3||user:Sum up");
  EXPECT_EQ(flat(set.prompts[3]), "p:4||user:Sum up\n\nA tale");
  EXPECT_EQ(error_of("p.jsonl", "{\"instruction\": 7}\n"),
            "p.jsonl:1: 'instruction' is number, expected a text; correct or remove it");
}

TEST(Prompts, LinesOfATextFileAreMessages) {
  const auto set = read("p.txt", "What is gravity?\r\n\n  Why {so}?\n");
  ASSERT_EQ(set.prompts.size(), 2U);
  EXPECT_EQ(flat(set.prompts[0]), "p:1||user:What is gravity?");
  EXPECT_EQ(flat(set.prompts[1]), "p:3||user:  Why {so}?");
  EXPECT_EQ(error_of("p.txt", "fine\n\xff\n"),
            "p.txt:2: is not UTF-8, expected text in it; correct or remove it");
}

TEST(Prompts, NamesInCapitalsSayTheSameAndAByteOrderMarkIsNoText) {
  EXPECT_EQ(flat(read("P.TXT", "\xEF\xBB\xBFWhy?\n").prompts.at(0)), "P:1||user:Why?");
  EXPECT_EQ(flat(read("P.JSON", R"([{"text": "Why?"}])").prompts.at(0)), "P:0||user:Why?");
  EXPECT_EQ(flat(read("p.jsonl", "\xEF\xBB\xBF{\"text\": \"Why?\"}").prompts.at(0)),
            "p:1||user:Why?");
}

TEST(Prompts, AContentMayBeAListOfTexts) {
  const auto line = [](const std::string& parts) {
    return R"({"messages": [{"role": "user", "content": )" + parts + "}]}";
  };
  const std::string two = R"([{"type": "text", "text": "Wh"}, {"type": "text", "text": "y?"}])";
  EXPECT_EQ(flat(read("p.jsonl", line(two)).prompts.at(0)), "p:1||user:Why?");
  const std::string place = "p.jsonl:1: messages[0]: content[0]: ";
  EXPECT_EQ(error_of("p.jsonl", line(R"([{"type": "image_url", "image_url": {"url": "x"}}])")),
            place + "is of type 'image_url', expected 'text'; remove the part");
  EXPECT_EQ(error_of("p.jsonl", line(R"(["Why?"])")),
            place + "has no 'type', which is needed; correct it or download the file again");
  EXPECT_EQ(error_of("p.jsonl", line("[]")),
            "p.jsonl:1: messages[0]: the content is empty, expected a text; correct or remove it");
}

TEST(Prompts, ReadsShareGptAndCountsWhatItSkips) {
  const auto set = read("s.json", R"([
    {"id": "x", "conversations": [{"from": "gpt", "value": "Hi"}, {"from": "human", "value": "Q"},
      {"from": "gpt", "value": "A"}, {"from": "human", "value": "R"}]},
    {"id": "y", "conversations": []},
    {"id": "z", "conversations": [{"from": "oracle", "value": "?"}]}])");
  ASSERT_EQ(set.prompts.size(), 1U);
  EXPECT_EQ(flat(set.prompts[0]), "x||user:Q|later:R");
  EXPECT_EQ(set.skipped, 2);
}

TEST(Prompts, ReadsListsOfMessages) {
  const std::string user = R"({"role": "user", "content": "U"})";
  EXPECT_EQ(flat(read("m.json", "[" + user + "]").prompts[0]), "m:0||user:U");
  const auto set = read("m.json", "[[" + user + "], {\"messages\": [" + user + "]}]");
  ASSERT_EQ(set.prompts.size(), 2U);
  EXPECT_EQ(flat(set.prompts[1]), "m:1||user:U");
}

TEST(Prompts, NamesTheLineThatIsWrong) {
  const std::string mend = "; correct or remove it";
  EXPECT_EQ(
      error_of("p.jsonl", "{\"text\": \"a\"}\n{\"text\": \n"),
      "p.jsonl:2: is not JSON (at byte 10 of the line), expected one JSON object per line" + mend);
  EXPECT_EQ(error_of("p.jsonl", "\n{\"question\": \"a\"}\n"),
            "p.jsonl:2: has no prompt, expected one of 'prompt', 'text', 'instruction', "
            "'messages', 'turns', 'conversations'" +
                mend);
  EXPECT_EQ(error_of("p.jsonl", "[]"),
            "p.jsonl:1: no user speaks in 'messages', expected a message of the user" + mend);
  EXPECT_EQ(error_of("p.jsonl", "3"), "p.jsonl:1: is number, expected a JSON object" + mend);
  EXPECT_EQ(error_of("p.jsonl", "{\"turns\": []}"),
            "p.jsonl:1: 'turns' holds no text, expected a list of the user's messages" + mend);
  EXPECT_EQ(error_of("p.jsonl", "{\"turns\": [\"a\", \" \"]}"),
            "p.jsonl:1: turns[1] is empty, expected a text" + mend);
  EXPECT_EQ(error_of("p.jsonl", "{\"text\": 5}"),
            "p.jsonl:1: 'text' is number, expected a text" + mend);
  EXPECT_EQ(
      error_of("p.jsonl", R"({"messages": [{"role": "tool", "content": "x"}]})"),
      "p.jsonl:1: messages[0]: the role is 'tool', expected user, assistant, or system as the "
      "first" +
          mend);
  EXPECT_EQ(
      error_of("p.jsonl", R"({"text": "x", "category": 1})"),
      "p.jsonl:1: 'category' is number, expected a string; correct it or download the file again");
  EXPECT_EQ(error_of("p.jsonl", "{\"text\": \"x\", \"id\": \"" + std::string(1025, 'a') + "\"}"),
            "p.jsonl:1: 'id' has 1025 bytes, expected at most 1024; shorten it");
  EXPECT_EQ(error_of("s.json", R"([{"conversations": [{"from": "human"}]}])"),
            "s.json: element 0: conversations[0]: has no 'value', which is needed; correct it or "
            "download the file again");
}

TEST(Prompts, RefusesAnEmptySet) {
  EXPECT_EQ(error_of("p.jsonl", "\n \n"),
            "p.jsonl: holds no prompt, expected at least one; give another file");
  EXPECT_EQ(error_of("s.json", R"([{"conversations": []}])"),
            "s.json: holds no prompt (1 conversations were skipped), expected at least one; give "
            "another file");
  EXPECT_EQ(error_of("s.json", "{}"),
            "s.json: holds object, expected a list of conversations; give such a list, or a .jsonl "
            "file with one object per line");
  EXPECT_EQ(error_of("s.json", "nonsense"),
            "s.json: is not JSON (at byte 2), expected a JSON file; copy or download it again");
  const TempFolder folder;
  EXPECT_EQ(error_text([&] { read_prompts(folder / "none.jsonl"); }),
            (folder / "none.jsonl").string() + ": no such file; check the path");
}

TEST(Prompts, ReadsTheShippedFilesWhole) {
  const std::filesystem::path configs = std::filesystem::path(MEDUSA_SOURCE_DIR) / "configs";
  EXPECT_EQ(read_prompts(configs / "demo_questions.jsonl").prompts.size(), 12U);
  EXPECT_EQ(read_prompts(configs / "bench_questions.jsonl").prompts.size(), 20U);
}

TEST(Prompts, ReadsLongFilesWhole) {
  std::string lines, list;
  for (int i = 0; i < 6000; ++i) {
    const std::string question = std::string(static_cast<size_t>(i % 700), 'a') + "? \u00e9\\n";
    lines += R"({"turns": [")" + question + "\", \"And then?\"]}\n";
    if (i % 10 == 0)
      list += (list.empty() ? "" : ",\n") +
              std::string(R"({"conversations": [{"from": "human", "value": ")") + question +
              R"("}, {"from": "gpt", "value": "Yes."}]})";
  }
  EXPECT_EQ(read("p.jsonl", lines).prompts.size(), 6000U);
  const PromptSet conversations = read("s.json", "[" + list + "]");
  EXPECT_EQ(conversations.prompts.size(), 600U);
  EXPECT_EQ(conversations.prompts[599].messages[0].content.size(), 5990U % 700 + 5);
}

TEST(Prompts, ANamelessListIsReadAsThatOfAJsonFile) {
  const std::string list = "[{\"prompt\": \"One\"},\n {\"prompt\": \"Two\"}]\n";
  const PromptSet named = read("list.json", list);
  for (const std::string& text :
       {list, std::string("\n[{\"prompt\": \"One\"}, {\"prompt\": \"Two\"}]")}) {
    const PromptSet nameless = read("list", text);
    ASSERT_EQ(nameless.prompts.size(), 2U) << text;
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(flat(nameless.prompts[i]), flat(named.prompts[i]));
  }
  const std::string line = "[{\"role\": \"user\", \"content\": \"One\"}]\n";
  EXPECT_EQ(read("lines", line + line).prompts.size(), 2U) << "each line is a conversation";
  EXPECT_EQ(read("lines", line).prompts.size(), 1U);
}

}  // namespace
}  // namespace medusa
