#include "tools/chat/slash_commands.h"

#include <gtest/gtest.h>

#include "tests/base/error_text.h"

namespace medusa {
namespace {

using fixtures::error_text;

TEST(SlashCommands, AreLinesThatBeginWithASlash) {
  EXPECT_FALSE(read_slash_command("What is 1/2?"));
  EXPECT_FALSE(read_slash_command(" /help"));
  const auto save = read_slash_command("/save \t my chat.json \r");
  ASSERT_TRUE(save);
  EXPECT_EQ(save->command, SlashCommand::Save);
  EXPECT_EQ(save->argument, "my chat.json");
  const auto system = read_slash_command("/system");
  ASSERT_TRUE(system);
  EXPECT_EQ(system->command, SlashCommand::System);
  EXPECT_EQ(system->argument, "");
}

TEST(SlashCommands, ASlipGetsTheNearestName) {
  EXPECT_EQ(error_text([] { read_slash_command("/sav x.json"); }),
            "unknown command '/sav' (did you mean '/save'?), expected one that /help lists; a "
            "message that begins with / stands between lines of \"\"\"");
  EXPECT_EQ(error_text([] { read_slash_command("/save"); }),
            "/save: found nothing behind it, expected FILE; type /save FILE, or /help");
  EXPECT_EQ(error_text([] { read_slash_command("/undo 2"); }),
            "/undo: found '2' behind it, expected nothing; leave it out");
}

TEST(SlashCommands, HelpListsWhatCanBeTyped) {
  const std::string help = slash_help();
  size_t commands = 0;
  for (size_t at = help.find("  /"); at != std::string::npos; at = help.find("  /", at + 1)) {
    const size_t begin = at + 2, end = help.find(' ', begin);
    const std::string name = help.substr(begin, end - begin);
    const bool needs = help.compare(end, 2, "  ") != 0 && help[end + 1] != '[';
    EXPECT_TRUE(read_slash_command(name + (needs ? " 1" : ""))) << name;
    ++commands;
  }
  EXPECT_EQ(commands, 11U) << help;
}

}  // namespace
}  // namespace medusa
