#include "tools/commands/completion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include "base/file.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

/// What bash offers for these words, the last of which is being typed, sorted.
class BashCompletion : public testing::Test {
 protected:
  BashCompletion() {
    write_file(folder_ / "script",
               bash_completion(
                   {{"train",
                     {{"--json", false}, {"--config", true}, {"--set", true}, {"--device", true}}},
                    {"inspect", {{"--json", false}}},
                    {"completion", {}}},
                   {{"seed", {}},
                    {"train.epochs", {}},
                    {"train.heads.input", {"hidden", "root"}},
                    {"backbone.device", {"auto", "cpu", "cuda"}}}));
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
    for (std::string word; in >> word;) found.push_back(word);
    std::sort(found.begin(), found.end());
    std::string text;
    for (const std::string& word : found) text += (text.empty() ? "" : " ") + word;
    return text;
  }

  fixtures::TempFolder folder_;
};

TEST_F(BashCompletion, OffersSubcommands) {
  EXPECT_EQ(complete({"medusa", ""}), "--help completion inspect train");
  EXPECT_EQ(complete({"medusa", "tr"}), "train");
}

TEST_F(BashCompletion, OffersTheOptionsOfTheSubcommand) {
  EXPECT_EQ(complete({"medusa", "train", "--"}), "--config --device --json --set");
  EXPECT_EQ(complete({"medusa", "inspect", "--"}), "--json");
}

TEST_F(BashCompletion, OffersSettingsAfterSet) {
  EXPECT_EQ(complete({"medusa", "train", "--set", "train."}), "train.epochs= train.heads.input=");
  EXPECT_EQ(complete({"medusa", "train", "--set", "train.heads.input", "="}), "hidden root");
  EXPECT_EQ(complete({"medusa", "train", "--set", "train.heads.input", "=", "r"}), "root");
  EXPECT_EQ(complete({"medusa", "train", "--set", "seed", "=", ""}), "");
}

TEST_F(BashCompletion, OffersDevicesAndFiles) {
  EXPECT_EQ(complete({"medusa", "train", "--device", "c"}), "cpu cuda");
  EXPECT_EQ(complete({"medusa", "train", "--config", "ru"}), "run.yaml");
  EXPECT_EQ(complete({"medusa", "inspect", "ru"}), "run.yaml");
  EXPECT_EQ(complete({"medusa", "completion", ""}), "bash");
}

TEST_F(BashCompletion, RefusesWordsThatTheShellWouldExpand) {
  EXPECT_THROW(bash_completion({{"a'b", {}}}, {}), std::logic_error);
}

}  // namespace
}  // namespace medusa
