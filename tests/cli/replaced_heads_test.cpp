// Heads and trees that took hours: what train, run and calibrate may write over, and what not.
#include "program.h"

namespace medusa::cli {
namespace {

class ReplacedHeads : public DistilledRun {
 protected:
  std::string succeed(const std::string& arguments) const {
    const ProcessResult ran = place_.run(arguments + kShort);
    EXPECT_EQ(ran.status, 0) << arguments << "\n" << ran.err;
    return ran.err;
  }
  /// And changes nothing of the heads in this folder.
  void expect_refused(const std::string& arguments, const std::string& folder,
                      const std::string& reason) const {
    const std::string before = heads(folder);
    const ProcessResult ran = place_.run(arguments + kShort);
    EXPECT_EQ(ran.status, 2) << arguments << "\n" << ran.err;
    EXPECT_NE(ran.err.find(reason), std::string::npos) << arguments << "\n" << ran.err;
    EXPECT_TRUE(heads(folder) == before) << arguments;
  }
  std::string heads(const std::string& folder) const {
    return file_text(place_ / (folder + "/heads.safetensors")) +
           file_text(place_ / (folder + "/manifest.yaml"));
  }
  /// Another run of the same text.
  static constexpr const char* kOther =
      " --run runs/other --set train.data=[runs/tiny/dataset] --set train.epochs=3";
  static constexpr const char* kShort = " --config run.yaml --set train.heads.input=hidden";
};

TEST_F(ReplacedHeads, TrainingReplacesNoHeadsThatAnotherRunTrained) {
  succeed("train");
  const char* reason = "holds heads that another run trained, expected a new folder";
  expect_refused(std::string("train --heads runs/tiny/heads") + kOther, "runs/tiny/heads", reason);
  expect_refused("run --heads runs/tiny/heads --run runs/other", "runs/tiny/heads", reason);
  EXPECT_FALSE(std::filesystem::exists(place_ / "runs/other/dataset"));
  succeed(std::string("train") + kOther);
  for (const char* fresh : {"", " --fresh"})
    expect_refused(std::string("train --heads runs/tiny/heads") + kOther + fresh, "runs/tiny/heads",
                   "holds heads that another training made");
}

TEST_F(ReplacedHeads, ARunsOwnHeadsAreMadeAgainWhereverTheyLieAndWhateverItsName) {
  succeed("train --heads mine");
  const std::string mine = heads("mine");
  succeed("train --heads mine");
  EXPECT_TRUE(heads("mine") == mine);
  std::filesystem::rename(place_ / "runs/tiny", place_ / "runs/renamed");
  const std::string weights = file_text(place_ / "mine/heads.safetensors");
  succeed("train --heads mine --run runs/renamed");
  EXPECT_TRUE(file_text(place_ / "mine/heads.safetensors") == weights);
  succeed("train --run runs/renamed");
  const std::string made = heads("runs/renamed/heads");
  succeed("train --run runs/renamed --fresh --set train.epochs=3");
  EXPECT_FALSE(heads("runs/renamed/heads") == made) << "asked to, in the run's own place";
}

TEST_F(ReplacedHeads, ImportedHeadsStayWhereTheyAre) {
  succeed("train");
  succeed("export --format vllm --output out");
  std::filesystem::remove_all(place_ / "runs/tiny/heads");
  succeed("import out");
  const std::string reason = "holds heads that were imported (";
  for (const char* command : {"train", "train --fresh", "run", "train --dry-run"})
    expect_refused(command, "runs/tiny/heads", reason);
  succeed("train --heads elsewhere");
}

TEST_F(ReplacedHeads, TheHeadsToBeginWithAreNotReplacedByTheResult) {
  succeed("train");
  expect_refused("train --fresh --set train.begin_with=runs/tiny/../tiny/heads", "runs/tiny/heads",
                 "where the result goes, expected heads in another place");
  succeed("train --fresh --set train.begin_with=runs/tiny/heads --heads further");
}

TEST_F(ReplacedHeads, CalibratingOtherHeadsKeepsTheTreeOfTheRunsOwn) {
  succeed("train");
  succeed("calibrate");
  succeed(std::string("train --heads other") + kOther);
  const std::string tree = file_text(place_ / "runs/tiny/tree.yaml");
  const ProcessResult ran = place_.run(std::string("calibrate --heads other") + kShort);
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_NE(ran.err.find("measured on the heads in runs/tiny/heads, found --heads other"),
            std::string::npos)
      << ran.err;
  EXPECT_EQ(file_text(place_ / "runs/tiny/tree.yaml"), tree);
  const std::string damaged = tree.substr(0, tree.find("paths:")) + "paths: [7]\n";
  write_text(place_ / "runs/tiny/tree.yaml", damaged);
  succeed("calibrate --heads other");
  succeed("calibrate --heads other --tree other.yaml");
  succeed("export --format medusa-2 --output out --heads other --tree other.yaml");
}

TEST_F(ReplacedHeads, CalibrationCountsNoSamplesThatWereTrainedOn) {
  succeed("train --set train.validation_fraction=0.3");
  const auto refusal = [&](const std::string& more) {
    const ProcessResult ran = place_.run("calibrate" + more + kShort);
    EXPECT_EQ(ran.status, 2) << ran.err;
    return ran.err;
  };
  EXPECT_NE(refusal(" --set train.validation_fraction=0.5")
                .find("train.validation_fraction is 0.5, expected at most 0.3 as in training"),
            std::string::npos);
  EXPECT_NE(refusal(" --seed 77 --set train.validation_fraction=0.3").find("seed is 77, expected "),
            std::string::npos);
  succeed("calibrate --set train.validation_fraction=0.3");
}

TEST_F(ReplacedHeads, AnInterruptedFreshStartSaysHowToGoOnWithoutAnother) {
  const std::string train = std::string("train --set train.epochs=10000") + kShort;
  for (const char* fresh : {"", " --fresh"}) {
    const ProcessResult ran = place_.run_until("INT", 4, train + fresh);
    EXPECT_EQ(ran.status, 130) << ran.err;
    const std::string how = std::string("interrupted; run the same command again") +
                            (*fresh == '\0' ? "" : ", without --fresh,") + " to continue";
    EXPECT_NE(ran.err.find(how), std::string::npos) << ran.err;
  }
}

}  // namespace
}  // namespace medusa::cli
