// `medusa` without medusa-core, and so without LibTorch: what it answers alone.
#include <nlohmann/json.hpp>

#include "program.h"

namespace medusa::cli {
namespace {

namespace fs = std::filesystem;

/// The program alone in a folder.
class FrontAlone : public testing::Test {
 protected:
  FrontAlone() { fs::copy_file(MEDUSA_BINARY, place_ / "medusa"); }

  ProcessResult run(const std::string& arguments) const {
    const std::string command = "cd '" + (place_ / ".").string() + "' && ./medusa " + arguments +
                                " >out.txt 2>err.txt </dev/null";
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), file_text(place_ / "out.txt"), file_text(place_ / "err.txt")};
  }

  CliFixture place_;
};

TEST_F(FrontAlone, LoadsNoLibTorch) {
  const auto needs_torch = [](const std::string& program) {
    return std::system(("readelf -W -d '" + program + "' | grep -q 'NEEDED.*libtorch'").c_str()) ==
           0;
  };
  EXPECT_TRUE(needs_torch(MEDUSA_BINARY "-core"));
  EXPECT_FALSE(needs_torch(MEDUSA_BINARY));
}

TEST_F(FrontAlone, ExplainsEveryCommandAsTheWholeProgramDoes) {
  const ProcessResult all = run("help --json");
  ASSERT_EQ(all.status, 0) << all.err;
  EXPECT_EQ(all.out, place_.run("help --json").out);
  const int status = std::system(
      ("'" MEDUSA_BINARY "-core' help --json >'" + (place_ / "core.json").string() + "'").c_str());
  ASSERT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(all.out, file_text(place_ / "core.json")) << "build medusa again";
  const auto pages = nlohmann::json::parse(all.out);
  EXPECT_GT(pages.at("settings").size(), 50U);
  for (const auto& command : pages.at("commands")) {
    const std::string name = command.at("name");
    const ProcessResult help = run(name + " --help");
    EXPECT_EQ(help.status, 0) << help.err;
    EXPECT_TRUE(help.out.starts_with("medusa " + name + ": ")) << help.out;
  }
}

TEST_F(FrontAlone, CompletesAndCorrects) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const ProcessResult script = run(std::string("completion ") + shell);
    EXPECT_EQ(script.status, 0) << script.err;
    EXPECT_NE(script.out.find("prompt_lookup"), std::string::npos) << shell << ": values";
  }
  EXPECT_NE(run("trian").err.find("(did you mean 'train'?)"), std::string::npos);
  EXPECT_NE(run("train --fersh").err.find("(did you mean '--fresh'?)"), std::string::npos);
  EXPECT_EQ(run("train --fersh").status, 2);
}

TEST_F(FrontAlone, HandsOverItsArgumentsAndWhatLibrariesRead) {
  write_text(place_ / "medusa-core",
             "#!/bin/sh\necho \"$GOMP_SPINCOUNT $ONEDNN_PRIMITIVE_CACHE_CAPACITY\" \"$@\"\n");
  fs::permissions(place_ / "medusa-core", fs::perms::owner_all);
  EXPECT_EQ(run("inspect 'x y'").out, "10000 128 inspect x y\n");
  ::setenv("OMP_WAIT_POLICY", "active", 1);
  EXPECT_EQ(run("inspect x").out, " 128 inspect x\n");
  ::unsetenv("OMP_WAIT_POLICY");
}

TEST_F(FrontAlone, SaysThatItsOtherHalfIsMissing) {
  const ProcessResult ran = run("inspect medusa");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("medusa-core: cannot be started (No such file or directory), expected the "
                         "other half of medusa"),
            std::string::npos)
      << ran.err;
}

}  // namespace
}  // namespace medusa::cli
