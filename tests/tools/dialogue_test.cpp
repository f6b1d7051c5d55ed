#include "tools/chat/dialogue.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "data/prompts.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::TempFolder;

std::string flat(const std::vector<ChatMessage>& messages) {
  std::string text;
  for (const ChatMessage& each : messages) text += "|" + each.role + ":" + each.content;
  return text;
}

Dialogue sample() {
  Dialogue out;
  out.set_system("Be kind");
  out.add({"One\n\"line\"", "A\x1b[31m"});
  out.add({"Two", ""});
  return out;
}

TEST(Dialogue, ComesBackFromItsFile) {
  const TempFolder folder;
  for (const char* name : {"chat.json", "chat.jsonl", "chat"}) {
    sample().save(folder / name);
    const Dialogue back = Dialogue::load(folder / name);
    EXPECT_EQ(flat(back.messages()), flat(sample().messages())) << name;
    EXPECT_EQ(back.system(), "Be kind");
    EXPECT_EQ(back.turns().size(), 2U);
    sample().save(folder / name);  // over itself
  }
  EXPECT_EQ(
      read_file(folder / "chat.json"),
      "{\"messages\":[{\"content\":\"Be kind\",\"role\":\"system\"},"
      "{\"content\":\"One\\n\\\"line\\\"\",\"role\":\"user\"},"
      "{\"content\":\"A\\u001b[31m\",\"role\":\"assistant\"},"
      "{\"content\":\"Two\",\"role\":\"user\"},{\"content\":\"\",\"role\":\"assistant\"}]}\n");
}

TEST(Dialogue, UndoTakesTheLastTurnBack) {
  Dialogue said = sample();
  EXPECT_EQ(said.undo()->question, "Two");
  EXPECT_EQ(flat(said.messages()), "|system:Be kind|user:One\n\"line\"|assistant:A\x1b[31m");
  EXPECT_TRUE(said.undo());
  EXPECT_FALSE(said.undo());
}

TEST(Dialogue, DoesNotReplaceAnotherFile) {
  const TempFolder folder;
  for (const char* text : {"My novel\n", "{\"prompt\": \"One\"}\n",
                           "{\"messages\": [{\"role\": \"user\", \"content\": \"U\"}]}\n"}) {
    write_file(folder / "file", text);
    const std::string error = error_text([&] { sample().save(folder / "file"); });
    EXPECT_NE(error.find("holds something else, expected a saved conversation"), std::string::npos)
        << error;
    EXPECT_EQ(read_file(folder / "file"), text);
  }
  EXPECT_NE(error_text([&] { Dialogue().save(folder / "empty"); }).find("nothing was said yet"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "empty"));
}

TEST(Dialogue, RefusesWhatIsNoConversation) {
  const TempFolder folder;
  const auto error_of = [&](const std::string& text) {
    write_file(folder / "a.json", text);
    const std::string error = error_text([&] { Dialogue::load(folder / "a.json"); });
    const std::string place = (folder / "a.json").string() + ": ";
    EXPECT_TRUE(error.starts_with(place)) << error;
    return error.substr(std::min(place.size(), error.size()));
  };
  const std::string user = R"({"role": "user", "content": "U"})",
                    model = R"({"role": "assistant", "content": "A"})";
  const std::string expected =
      ", expected messages of user and assistant in turn, the assistant's last; correct the file";
  EXPECT_EQ(
      error_of("[" + std::string("[") + user + "," + model + "],[" + user + "," + model + "]]"),
      "holds 2 conversations, expected one, as /save writes it; give another file, or cut "
      "this one");
  EXPECT_EQ(error_of(R"({"messages": [)" + user + "," + user + "," + model + "]}"),
            "message 1 is of 'user'" + expected);
  EXPECT_EQ(error_of(R"({"messages": [)" + model + "]}"), "message 0 is of 'assistant'" + expected);
  EXPECT_EQ(error_of(R"({"messages": [)" + user + "," + model + "," + user + "]}"),
            "the last message is the user's" + expected);
  EXPECT_NE(error_of("{}").find("has no conversation"), std::string::npos);
  EXPECT_NE(error_of("3").find("holds no conversation"), std::string::npos);
}

}  // namespace
}  // namespace medusa
