#include "tools/front/completion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include "base/file.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

OptionRow option(const std::string& name, const std::string& argument,
                 std::vector<std::string> choices = {}) {
  OptionRow row;
  row.name = name;
  row.argument = argument;
  row.choices = std::move(choices);
  return row;
}

OptionRow positional(const std::string& name, std::vector<std::string> choices = {}) {
  OptionRow row = option(name, name, std::move(choices));
  row.is_positional = true;
  return row;
}

CommandPage command(const std::string& name, const std::string& summary,
                    std::vector<OptionRow> rows) {
  CommandPage page;
  page.name = name;
  page.summary = summary;
  page.rows = std::move(rows);
  return page;
}

FieldHelp setting(const std::string& key, const std::string& allowed) {
  return {key, "", allowed, ""};
}

ProgramPages pages() {
  OptionRow list = option("--methods", "NAME,…", {"medusa", "merge", "none"});
  list.is_list = true;
  return {
      {command("train", "train heads",
               {positional("MODEL"), option("--json", ""), option("--config", "FILE"),
                option("--set", "KEY=VALUE"), option("--device", "NAME", {"auto", "cpu", "cuda"}),
                option("--seed", "N"), list}),
       command("inspect", "say what it's", {positional("PATH"), option("--json", "")}),
       command("dataset", "text", {positional("ACTION", {"export", "import"}), positional("FILE")}),
       command("completion", "scripts", {positional("SHELL", {"bash", "zsh", "fish"})})},
      {setting("seed", ""), setting("train.epochs", "> 0"),
       setting("train.heads.input", "hidden | root"),
       setting("backbone.device", "auto | cpu | cuda")}};
}

/// What bash offers for these words, the last of which is being typed, sorted; words with spaces in
/// quotes.
class BashCompletion : public testing::Test {
 protected:
  BashCompletion() {
    write_file(folder_ / "script", completion_script("bash", pages()));
    write_file(folder_ / "run.yaml", "x\n");
  }

  std::string complete(const std::vector<std::string>& words) {
    std::string command =
        "cd '" + folder_.path().string() + "' && bash -c 'source ./script; COMP_WORDS=(";
    for (const std::string& word : words) command += "\"" + word + "\" ";
    command += "); COMP_CWORD=" + std::to_string(words.size() - 1) +
               "; _medusa 2>/dev/null; printf \"%s\\n\" \"${COMPREPLY[@]}\"'";
    std::string output;
    FILE* pipe = ::popen(command.c_str(), "r");
    std::array<char, 256> buffer{};
    while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) output += buffer.data();
    EXPECT_EQ(::pclose(pipe), 0);
    std::vector<std::string> found;
    std::istringstream in(output);
    for (std::string word; std::getline(in, word);)
      if (!word.empty())
        found.push_back(word.find(' ') == std::string::npos ? word : "'" + word + "'");
    std::sort(found.begin(), found.end());
    std::string text;
    for (const std::string& word : found) text += (text.empty() ? "" : " ") + word;
    return text;
  }

  fixtures::TempFolder folder_;
};

TEST_F(BashCompletion, OffersSubcommands) {
  EXPECT_EQ(complete({"medusa", ""}), "--help --version completion dataset help inspect train");
  EXPECT_EQ(complete({"medusa", "tr"}), "train");
  EXPECT_EQ(complete({"medusa", "help", "in"}), "inspect");
}

TEST_F(BashCompletion, OffersFilesWithSpacesWhole) {
  write_file(folder_ / "a b.gguf", "x");
  write_file(folder_ / "a c.gguf", "x");
  EXPECT_EQ(complete({"medusa", "inspect", "a"}), "'a b.gguf' 'a c.gguf'");
  EXPECT_EQ(complete({"medusa", "inspect", "none"}), "");
}

TEST_F(BashCompletion, OffersTheOptionsOfTheSubcommand) {
  EXPECT_EQ(complete({"medusa", "train", "--"}),
            "--config --device --help --json --methods --seed --set");
  EXPECT_EQ(complete({"medusa", "inspect", "--"}), "--help --json");
}

TEST_F(BashCompletion, OffersSettingsAfterSet) {
  EXPECT_EQ(complete({"medusa", "train", "--set", "train."}), "train.epochs= train.heads.input=");
  EXPECT_EQ(complete({"medusa", "train", "--set", "train.heads.input", "="}), "hidden root");
  EXPECT_EQ(complete({"medusa", "train", "--set", "train.heads.input", "=", "r"}), "root");
  EXPECT_EQ(complete({"medusa", "train", "--set", "seed", "=", ""}), "");
}

TEST_F(BashCompletion, OffersTheValuesOfEveryOption) {
  EXPECT_EQ(complete({"medusa", "train", "--device", "c"}), "cpu cuda");
  EXPECT_EQ(complete({"medusa", "train", "--device", "=", "c"}), "cpu cuda");
  EXPECT_EQ(complete({"medusa", "train", "--methods", "me"}), "medusa merge");
  EXPECT_EQ(complete({"medusa", "train", "--methods", "none,mer"}), "none,merge");
  EXPECT_EQ(complete({"medusa", "train", "--seed", ""}), "");
}

TEST_F(BashCompletion, OffersFilesAndWordsOfPositionals) {
  EXPECT_EQ(complete({"medusa", "train", "--config", "ru"}), "run.yaml");
  EXPECT_EQ(complete({"medusa", "train", "ru"}), "run.yaml");
  EXPECT_EQ(complete({"medusa", "inspect", "ru"}), "run.yaml");
  EXPECT_EQ(complete({"medusa", "dataset", "ex"}), "export");
  EXPECT_EQ(complete({"medusa", "dataset", "export", "ru"}), "run.yaml");
  EXPECT_EQ(complete({"medusa", "completion", ""}), "bash fish zsh");
}

TEST(Completion, RefusesWordsThatTheShellWouldExpand) {
  EXPECT_THROW(completion_script("bash", {{command("a'b", "", {})}, {}}), std::logic_error);
}

TEST(Completion, ZshAndFishKnowCommandsOptionsAndValues) {
  const std::string zsh = completion_script("zsh", pages());
  for (const char* part : {"'inspect:say what it'\\''s'", "--device=[]:NAME:(auto cpu cuda)",
                           "--config=[]:FILE:_files", "1::ACTION:(export import)",
                           "*train.heads.input) compadd -- hidden root ;;"})
    EXPECT_NE(zsh.find(part), std::string::npos) << part << "\n" << zsh;
  const std::string fish = completion_script("fish", pages());
  for (const char* part :
       {"-a inspect -d 'say what it\\'s'", "-l device -d '' -x -a 'auto cpu cuda'",
        "-l config -d '' -r -F", "train.heads.input=root"})
    EXPECT_NE(fish.find(part), std::string::npos) << part << "\n" << fish;
}

}  // namespace
}  // namespace medusa
