// --help of every subcommand, and the exit codes of the command line itself.
#include "program.h"

namespace medusa::cli {
namespace {

TEST(Help, EverySubcommandExplainsItself) {
  const CliFixture place;
  const ProcessResult program = place.run("--help");
  EXPECT_EQ(program.status, 0);
  for (const char* command :
       {"run",      "init",   "distill", "train",   "calibrate", "build-store", "make-draft",
        "generate", "chat",   "serve",   "bench",   "profile",   "quality",     "inspect",
        "import",   "export", "doctor",  "dataset", "report",    "completion"}) {
    EXPECT_NE(program.out.find(std::string("\n  ") + command + "  "), std::string::npos)
        << command << ": a line of its own, apart from what it does";
    const ProcessResult help = place.run(std::string(command) + " --help");
    EXPECT_EQ(help.status, 0) << command << help.err;
    EXPECT_TRUE(help.out.starts_with(std::string("medusa ") + command + ": ")) << help.out;
    EXPECT_EQ(place.run(std::string("help ") + command).out, help.out);
  }
}

TEST(Help, ListsSettingsWithDefaultsAndRanges) {
  const CliFixture place;
  const ProcessResult help = place.run("train --help all");
  EXPECT_NE(help.out.find("train.learning_rate: 0.001"), std::string::npos) << help.out;
  EXPECT_NE(help.out.find("[> 0]"), std::string::npos);
  EXPECT_NE(help.out.find("train.heads.input: root"), std::string::npos);
  EXPECT_EQ(help.out.find("distill."), std::string::npos) << "settings that train does not read";
  EXPECT_EQ(place.run("help train all").out, help.out);
  EXPECT_EQ(place.run("train --help").out.find("train.learning_rate"), std::string::npos);
}

TEST(Help, AllOfTheProgramListsCommandsAndEverySetting) {
  const CliFixture place;
  const ProcessResult help = place.run("help all");
  EXPECT_EQ(help.status, 0) << help.err;
  EXPECT_EQ(help.out.find(place.run("help").out), 0U);
  for (const char* setting : {"backbone.dtype: ", "distill.batch: ", "train.learning_rate: 0.001",
                              "calibrate.nodes: ", "generate.medusa.adaptive: null"})
    EXPECT_NE(help.out.find(setting), std::string::npos) << setting;
  EXPECT_EQ(place.run("--help all").out, help.out);
  EXPECT_EQ(place.run("help all more").status, 2);
}

TEST(Help, WordsThatItDoesNotKnowAreTheUsersError) {
  const CliFixture place;
  for (const char* typed : {"help train alll", "train --help alll", "help train all alll"}) {
    const ProcessResult ran = place.run(typed);
    EXPECT_EQ(ran.status, 2) << typed;
    EXPECT_EQ(
        ran.err,
        "medusa: help: found 'alll' behind the command, expected 'all' or nothing; see medusa "
        "help\n");
  }
  const ProcessResult text = place.run("generate model.gguf -- --help");  // a prompt
  EXPECT_NE(text.out.substr(0, 16), "medusa generate:") << text.out;
}

TEST(Help, UnknownSubcommandIsTheUsersError) {
  const CliFixture place;
  for (const char* typed : {"trian --config run.yaml", "help trian"}) {
    const ProcessResult ran = place.run(typed);
    EXPECT_EQ(ran.status, 2);
    EXPECT_TRUE(
        ran.err.starts_with("medusa: unknown subcommand 'trian' (did you mean 'train'?), "
                            "expected one of generate, "))
        << ran.err;
    EXPECT_TRUE(ran.err.ends_with("; see medusa --help\n")) << ran.err;
  }
}

TEST(Help, UnknownOptionIsTheUsersError) {
  const CliFixture place;
  const ProcessResult ran = place.run("train --config run.yaml --epochs 3");
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err,
            "medusa: train: unknown option '--epochs' (did you mean '--set train.epochs=…'?), "
            "expected an option of this command; see medusa train --help\n");
}

TEST(Help, TheBeginningOfAnOptionIsEnoughForAHint) {
  const CliFixture place;
  EXPECT_EQ(place.run("export --config run.yaml --out heads").err,
            "medusa: export: unknown option '--out' (did you mean '--output'?), expected an option "
            "of this command; see medusa export --help\n");
}

TEST(Help, NoSubcommandListsThem) {
  const CliFixture place;
  const ProcessResult ran = place.run("");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("no subcommand given, expected medusa COMMAND"), std::string::npos)
      << ran.err;
}

}  // namespace
}  // namespace medusa::cli
