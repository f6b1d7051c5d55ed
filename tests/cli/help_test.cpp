// --help of every subcommand, and the exit codes of the command line itself.
#include "program.h"

namespace medusa::cli {
namespace {

TEST(Help, EverySubcommandExplainsItself) {
  const Workplace place;
  const Ran program = place.run("--help");
  EXPECT_EQ(program.status, 0);
  for (const char* command : {"distill", "train", "calibrate", "build-store", "make-draft",
                              "generate", "bench", "profile", "quality", "inspect", "import",
                              "export", "doctor", "dataset", "report", "completion"}) {
    EXPECT_NE(program.out.find(std::string("\n  ") + command + "  "), std::string::npos)
        << command << ": a line of its own, apart from what it does";
    const Ran help = place.run(std::string(command) + " --help");
    EXPECT_EQ(help.status, 0) << command << help.err;
    EXPECT_NE(help.out.find(std::string("medusa ") + command), std::string::npos) << help.out;
  }
}

TEST(Help, ListsSettingsWithDefaultsAndRanges) {
  const Workplace place;
  const Ran help = place.run("train --help");
  EXPECT_NE(help.out.find("train.learning_rate: 0.001"), std::string::npos) << help.out;
  EXPECT_NE(help.out.find("[> 0]"), std::string::npos);
  EXPECT_NE(help.out.find("train.heads.input: root"), std::string::npos);
  EXPECT_EQ(help.out.find("distill."), std::string::npos) << "settings that train does not read";
}

TEST(Help, UnknownSubcommandIsTheUsersError) {
  const Workplace place;
  const Ran ran = place.run("trian --config run.yaml");
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(
      ran.err,
      "medusa: unknown subcommand 'trian' (did you mean 'train'?), expected one of distill, "
      "train, calibrate, build-store, make-draft, generate, serve, "
      "bench, profile, quality, inspect, import, export, doctor, dataset, report, completion; see "
      "medusa --help\n");
}

TEST(Help, UnknownOptionIsTheUsersError) {
  const Workplace place;
  const Ran ran = place.run("train --config run.yaml --epochs 3");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("medusa: train: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("--epochs"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("see medusa train --help"), std::string::npos) << ran.err;
}

TEST(Help, NoSubcommandListsThem) {
  const Workplace place;
  const Ran ran = place.run("");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("no subcommand given, expected medusa COMMAND"), std::string::npos)
      << ran.err;
}

}  // namespace
}  // namespace medusa::cli
