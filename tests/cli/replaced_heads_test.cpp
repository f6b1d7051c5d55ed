// Heads and trees that took hours: what train, run and calibrate may write over, and what not.
#include <nlohmann/json.hpp>
#include <regex>

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
  const char* reason = "holds heads, and this run has no training that made them";
  expect_refused(std::string("train --heads runs/tiny/heads") + kOther, "runs/tiny/heads", reason);
  expect_refused("run --heads runs/tiny/heads --run runs/other", "runs/tiny/heads", reason);
  EXPECT_FALSE(std::filesystem::exists(place_ / "runs/other/dataset"));
  succeed(std::string("train") + kOther);
  expect_refused(std::string("train --heads runs/tiny/heads") + kOther, "runs/tiny/heads",
                 "holds heads that another training made");
  expect_refused(std::string("train --fresh --heads runs/tiny/heads") + kOther, "runs/tiny/heads",
                 "holds heads, expected a new folder with --fresh");
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

TEST_F(ReplacedHeads, WhatWasRefusedOnceIsRefusedAgain) {
  succeed("train");
  std::filesystem::remove_all(place_ / "runs/tiny/train");
  for (int i = 0; i < 2; ++i)
    expect_refused("train --set train.epochs=3", "runs/tiny/heads",
                   "holds heads that another training made");
  EXPECT_FALSE(std::filesystem::exists(place_ / "runs/tiny/train"));
  succeed("train");  // makes the same ones again
  succeed("train --fresh --heads mine --set train.epochs=3");
  expect_refused("train --set train.epochs=3", "runs/tiny/heads",
                 "holds heads that another training made");
}

TEST_F(ReplacedHeads, HeadsAloneAreRefusedBeforeAnythingIsDistilled) {
  succeed("train");
  std::filesystem::remove_all(place_ / "runs/tiny/train");
  std::filesystem::remove_all(place_ / "runs/tiny/dataset");
  expect_refused("run", "runs/tiny/heads", "neither their text nor their training");
  EXPECT_FALSE(std::filesystem::exists(place_ / "runs/tiny/dataset"));
  succeed("run --fresh");
}

TEST_F(ReplacedHeads, ARefusedFreshStartKeepsWhatWasBegun) {
  succeed("train --heads mine");
  const std::string checkpoint = file_text(place_ / "runs/tiny/train/checkpoint/checkpoint.yaml");
  ASSERT_FALSE(checkpoint.empty());
  const std::string dataset = file_text(place_ / "runs/tiny/dataset/manifest.yaml");
  for (const char* command : {"train --fresh", "run --fresh"})
    expect_refused(command + std::string(" --heads mine --set train.epochs=3"), "mine",
                   "--heads mine: holds heads, expected a new folder with --fresh");
  expect_refused(
      "train --fresh --set train.keep_best=true --set train.validation_fraction=0 --heads new",
      "mine", "train.keep_best needs samples");
  EXPECT_EQ(file_text(place_ / "runs/tiny/train/checkpoint/checkpoint.yaml"), checkpoint);
  EXPECT_EQ(file_text(place_ / "runs/tiny/dataset/manifest.yaml"), dataset);
}

/// Whatever it is refused for, and whichever stage that is.
TEST_F(ReplacedHeads, ARefusedFreshTrainingKeepsItsProgress) {
  const std::string joint = "train --set train.stages=[joint] --set train.joint.max_steps=1";
  succeed("train");
  succeed(joint);
  succeed("make-draft --set draft.layers=1");
  const std::string run = "runs/tiny/";
  const auto refused = [&](const std::string& arguments, const std::string& progress) {
    const std::string before = file_text(place_ / (run + progress + "/metrics.jsonl"));
    ASSERT_FALSE(before.empty()) << progress;
    EXPECT_EQ(place_.run(arguments + " --fresh" + kShort).status, 2) << arguments;
    EXPECT_EQ(file_text(place_ / (run + progress + "/metrics.jsonl")), before) << arguments;
  };
  for (const char* more :
       {" --set train.begin_with=nowhere", " --set train.begin_with=model.gguf",
        " --set train.begin_with=runs/tiny/heads", " --set backbone.threads=99999",
        " --set train.begin_with=runs/tiny/heads --set train.heads.num_heads=1 --heads more"})
    refused(std::string("train") + more, "train");
  refused(joint + " --set train.joint.heads=nowhere", "joint/train");
  refused(joint + " --set backbone.threads=99999", "joint/train");
  refused("make-draft --set draft.layers=99", "draft-train");
  refused(
      "make-draft --set draft.layers=1 --set train.validation_fraction=0.999 --set "
      "train.data=[runs/tiny/dataset,nowhere]",
      "draft-train");
}

TEST_F(ReplacedHeads, AJointStageBehindOthersRemovesItsProgressWhenItBegins) {
  const std::string both = "train --set train.stages=[heads,joint] --set train.joint.max_steps=1";
  succeed(both);
  const auto progress = [&] {
    return file_text(place_ / "runs/tiny/train/metrics.jsonl") +
           file_text(place_ / "runs/tiny/joint/train/metrics.jsonl");
  };
  const std::string before = progress();
  expect_refused(both + " --fresh --set train.joint.heads=nowhere", "runs/tiny/heads", "nowhere");
  expect_refused(both + " --fresh --set train.joint.heads=runs/tiny/joint/heads", "runs/tiny/heads",
                 "trained on the backbone ");
  expect_refused(both + " --fresh --set train.validation_fraction=0", "runs/tiny/heads",
                 "train.joint.guard needs samples that are kept out");
  EXPECT_EQ(progress(), before);
  succeed(both + " --fresh --set train.epochs=1");
  // Interrupted in the heads' stage it is still to begin anew, with other settings, too.
  const std::string longer = both + " --set train.epochs=1 --set train.joint.max_steps=2";
  expect_refused(longer, "runs/tiny/joint/heads", "train.joint.max_steps");
  write_text(place_ / "runs/tiny/joint/train/begins-anew", "");
  succeed(longer);
  EXPECT_FALSE(std::filesystem::exists(place_ / "runs/tiny/joint/train/begins-anew"));
}

TEST_F(ReplacedHeads, AJointStageAloneSaysHowToBeginWithTheRunsOwn) {
  const std::string joint = "train --set train.stages=[joint] --set train.joint.max_steps=1";
  const auto note_of = [&](const std::string& more) {
    const ProcessResult ran = place_.run(joint + more + kShort);
    EXPECT_EQ(ran.status, 0) << ran.err;
    const size_t at = ran.err.find("the heads begin untrained; ");
    return at == std::string::npos ? "" : ran.err.substr(at, ran.err.find('\n', at) - at);
  };
  EXPECT_EQ(note_of(""),
            "the heads begin untrained; train.stages: [heads, joint] trains them first");
  succeed("train");
  EXPECT_EQ(note_of(" --fresh"),
            "the heads begin untrained; train.joint.heads: runs/tiny/heads begins with this run's "
            "own");
  EXPECT_EQ(note_of(" --fresh --set train.joint.heads=runs/tiny/heads"), "");
}

TEST_F(ReplacedHeads, ARunLooksAtItsTrainingBeforeItBeginsAnew) {
  succeed("train");
  succeed("train --set train.stages=[joint] --set train.joint.max_steps=1");
  const auto all = [&] {
    return file_text(place_ / "runs/tiny/train/metrics.jsonl") +
           file_text(place_ / "runs/tiny/dataset/shard-00000.h5");
  };
  const std::string before = all();
  const std::string fresh = "run --fresh --set ";
  expect_refused(fresh + "train.begin_with=runs/tiny/joint/heads", "runs/tiny/heads",
                 "trained on the backbone ");
  expect_refused(fresh + "train.data=[nowhere]", "runs/tiny/heads", "nowhere");
  expect_refused(fresh + "train.keep_best=true --set train.validation_fraction=0",
                 "runs/tiny/heads", "train.keep_best needs samples that are kept out");
  expect_refused(fresh + "train.hidden=cached --set distill.record_hidden=false", "runs/tiny/heads",
                 "expected states that are recorded");
  expect_refused(fresh +
                     "train.stages=[heads,joint] --set train.joint.part=last_layers --set "
                     "train.joint.last_layers=9",
                 "runs/tiny/heads", "train.joint.last_layers is 9");
  write_text(place_ / "runs/tiny/joint/model/mine.txt", "mine");
  expect_refused(fresh + "train.stages=[heads,joint]", "runs/tiny/heads", "holds 'mine.txt'");
  EXPECT_EQ(all(), before);
}

TEST_F(ReplacedHeads, ARunOfTheJointStageAloneNeedsHeadsAndKeepsTheirProgress) {
  const std::string joint =
      " --set train.stages=[joint] --set train.joint.max_steps=1 --set train.data=[runs/text]";
  std::filesystem::copy(place_ / "runs/tiny/dataset", place_ / "runs/text");
  const ProcessResult ran = place_.run("run --fresh" + joint + kShort);
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_NE(ran.err.find("there are no heads in runs/tiny/heads to calibrate"), std::string::npos)
      << ran.err;
  succeed("train --set train.data=[runs/text]");
  const std::string before = file_text(place_ / "runs/tiny/train/metrics.jsonl");
  succeed("run --fresh" + joint);
  EXPECT_EQ(file_text(place_ / "runs/tiny/train/metrics.jsonl"), before);
}

/// As one that was interrupted.
TEST_F(ReplacedHeads, ADraftModelThatIsMadeAnewIsFinishedWithoutFresh) {
  const std::string make = "make-draft --set draft.layers=1";
  succeed(make);
  const char* there = "is there already";
  EXPECT_NE(succeed(make).find(there), std::string::npos);
  write_text(place_ / "runs/tiny/draft-train/replaceable", "the draft model");
  EXPECT_EQ(succeed(make).find(there), std::string::npos);
  EXPECT_NE(succeed(make).find(there), std::string::npos);
}

TEST_F(ReplacedHeads, AFreshRunThatWasInterruptedGoesOnWithoutFresh) {
  succeed("train");
  const std::string run = std::string("run") + kShort +
                          " --set distill.max_new_tokens=200 --set distill.batch=1"
                          " --set calibrate.nodes=4";
  const std::filesystem::path shard = place_ / "runs/tiny/dataset/shard-00000.h5";
  const std::string text = file_text(shard);
  const auto begun = [&] { return !std::filesystem::exists(shard) || file_text(shard) != text; };
  // Interrupted before that it goes on with --fresh.
  for (double wait = 0.5; !begun() && wait < 60; wait *= 2) {
    const ProcessResult ran = place_.run_until("INT", wait, run + " --fresh");
    EXPECT_EQ(ran.status, 130) << ran.err;
  }
  const ProcessResult again = place_.run(run);
  EXPECT_EQ(again.status, 0) << again.err;
}

TEST_F(ReplacedHeads, ATunedModelWithoutItsTrainingIsNotReplaced) {
  const std::string joint = "train --set train.stages=[joint] --set train.joint.max_steps=2";
  succeed(joint);
  const std::string made = file_text(place_ / "runs/tiny/joint/heads/manifest.yaml");
  std::filesystem::remove_all(place_ / "runs/tiny/joint/train");
  const ProcessResult ran = place_.run(joint + kShort);
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_NE(ran.err.find("runs/tiny/joint: holds a tuned model and its heads, and not the"),
            std::string::npos)
      << ran.err;
  EXPECT_EQ(file_text(place_ / "runs/tiny/joint/heads/manifest.yaml"), made);
  succeed(joint + " --fresh");
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

TEST_F(ReplacedHeads, ImportedHeadsAreToldWhatMakesTheirTree) {
  succeed("train");
  succeed("export --format vllm --output out");
  const std::string elsewhere = " --run runs/imported";
  succeed("import out" + elsewhere);
  const std::string note = succeed("generate Once --set generate.max_new_tokens=4" + elsewhere);
  EXPECT_TRUE(std::regex_search(note, std::regex("makes them: \\S+ distill .*, then \\S+ calib")))
      << note;
  const std::string next = succeed("distill" + elsewhere);
  EXPECT_TRUE(std::regex_search(next, std::regex("next: \\S+ calibrate "))) << next;
  succeed("calibrate" + elsewhere);
}

TEST_F(ReplacedHeads, TheHeadsToBeginWithAreNotReplacedByTheResult) {
  succeed("train");
  expect_refused("train --fresh --set train.begin_with=runs/tiny/../tiny/heads", "runs/tiny/heads",
                 "in another run: --run FOLDER --set 'train.data=[\"runs/tiny/dataset\"]'");
  succeed(
      "train --run runs/further --set train.data=[runs/tiny/dataset] --set "
      "train.begin_with=runs/tiny/heads");
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

TEST_F(ReplacedHeads, ARunReplacesNoTreeThatItIsGiven) {
  succeed("train");
  succeed("calibrate");
  const std::string tree = file_text(place_ / "runs/tiny/tree.yaml");
  const ProcessResult ran =
      place_.run(std::string("run --run runs/other --tree runs/tiny/tree.yaml") + kShort);
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_NE(
      ran.err.find("--tree runs/tiny/tree.yaml: measured on other heads than runs/other/heads"),
      std::string::npos)
      << ran.err;
  EXPECT_EQ(file_text(place_ / "runs/tiny/tree.yaml"), tree);
  succeed("run --tree runs/tiny/tree.yaml");
}

TEST_F(ReplacedHeads, HeadsThatBeginAsOthersKeepTheSameSamplesOut) {
  succeed("train");
  const std::string further =
      "train --run runs/more --set train.data=[runs/tiny/dataset] --set "
      "train.begin_with=runs/tiny/heads";
  for (const char* other : {" --seed 4", " --set train.validation_fraction=0.4"}) {
    const ProcessResult ran = place_.run(further + other + kShort);
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_NE(ran.err.find("as in their training, as other samples were trained on"),
              std::string::npos)
        << ran.err;
  }
  succeed(further);
}

TEST_F(ReplacedHeads, CalibrationCountsNoSamplesThatWereTrainedOn) {
  succeed("train --set train.validation_fraction=0.3");
  const auto refusal = [&](const std::string& more) {
    const ProcessResult ran = place_.run("calibrate" + more + kShort);
    EXPECT_EQ(ran.status, 2) << ran.err;
    return ran.err;
  };
  EXPECT_NE(
      refusal(" --set train.validation_fraction=0.5")
          .find("train.validation_fraction is 0.5, expected at most 0.3 as in their training"),
      std::string::npos);
  EXPECT_NE(refusal(" --seed 77 --set train.validation_fraction=0.3").find("seed is 77, expected "),
            std::string::npos);
  succeed("calibrate --set train.validation_fraction=0.3");
}

TEST_F(ReplacedHeads, WhatHeadsThatTheseBeganAsLearnedFromJudgesNeither) {
  succeed("train");
  const auto ran = place_.run("distill --config run.yaml --run runs/text --seed 9");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::string other = " --seed 9 --set train.data=[runs/text/dataset]";
  succeed("train --run runs/second --set train.begin_with=runs/tiny/heads" + other);
  succeed("train --run runs/third --set train.begin_with=runs/second/heads" + other);
  succeed(
      "train --run runs/joint --set train.stages=[joint] --set train.joint.max_steps=1 --set "
      "train.joint.heads=runs/tiny/heads" +
      other);
  for (const char* second : {"--run runs/second", "--run runs/third",
                             "--run runs/joint --heads runs/joint/joint/heads --model "
                             "runs/joint/joint/model"}) {
    const ProcessResult judged = place_.run(
        std::string("calibrate --seed 9 --set train.data=[runs/tiny/dataset] ") + second + kShort);
    EXPECT_EQ(judged.status, 2) << judged.err;
    EXPECT_NE(judged.err.find("seed is 9, expected 3 as in their training"), std::string::npos)
        << judged.err;
  }
  succeed("calibrate --run runs/second" + other);
  const auto inspected = place_.run("inspect runs/third/heads --json");
  const auto learned = nlohmann::json::parse(inspected.out).at("made_from").at("learned_before");
  EXPECT_EQ(learned.size(), 2U) << "the first text and the second";
}

TEST_F(ReplacedHeads, WhatSomebodyPutAmongHeadsIsNotLost) {
  succeed("train");
  succeed("export --format vllm --output runs/tiny/heads/export");
  for (const char* again : {"train", "train --fresh"})
    expect_refused(again, "runs/tiny/heads", "holds 'export', which was put there later");
  EXPECT_TRUE(std::filesystem::exists(place_ / "runs/tiny/heads/export/DONE"));
  std::filesystem::remove_all(place_ / "runs/tiny/heads/export");
  write_text(place_ / "runs/tiny/heads/notes", "mine");
  expect_refused("train", "runs/tiny/heads", "holds 'notes', which was put there later");
  std::filesystem::remove(place_ / "runs/tiny/heads/notes");
  succeed("train");
}

TEST_F(ReplacedHeads, HeadsThatCannotBeReadAreReplacedOnlyWhenAsked) {
  succeed("train");
  const auto spoil = [&](const std::string& folder) {
    const auto file = place_ / (folder + "/manifest.yaml");
    write_text(file, file_text(file) + "a_later_program: knows this\n");
  };
  spoil("runs/tiny/heads");
  expect_refused("train", "runs/tiny/heads", "holds heads that cannot be read");
  expect_refused("run", "runs/tiny/heads", "holds heads that cannot be read");
  succeed("train --fresh");
  succeed("export --format vllm --output out");
  succeed("import out --run runs/imported");
  spoil("runs/imported/heads");
  for (const char* fresh : {"", " --fresh"})
    expect_refused(
        std::string("train --run runs/imported --set train.data=[runs/tiny/dataset]") + fresh,
        "runs/imported/heads", "may have been imported");
}

TEST_F(ReplacedHeads, AnEmptyTreeFileIsFilled) {
  succeed("train");
  write_text(place_ / "runs/tiny/tree.yaml", "");
  succeed("run --set generate.max_new_tokens=4");
  EXPECT_NE(file_text(place_ / "runs/tiny/tree.yaml"), "");
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
