// make-draft, calibrate --layers, and the drafters that decode by themselves, through the
// executable.
#include <nlohmann/json.hpp>

#include "program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;

class DraftModels : public DistilledRun {
 protected:
  json answered(const std::string& options) const {
    const ProcessResult ran =
        place_.run("generate --config run.yaml --json --prompt 'Once upon a time' " + options);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return json::parse(ran.out).at("answers").at(0);
  }
};

TEST_F(DraftModels, ACutOfTheBackboneIsTrainedAndDrafts) {
  const ProcessResult made = place_.run("make-draft --config run.yaml --set draft.layers=3 --json");
  ASSERT_EQ(made.status, 0) << made.err;
  const json draft = json::parse(made.out);
  EXPECT_EQ(draft.at("layers"), json({0, 1, 4}));
  EXPECT_EQ(draft.at("complete"), true);
  const ProcessResult again = place_.run("make-draft --config run.yaml --set draft.layers=3");
  EXPECT_EQ(again.status, 0);
  EXPECT_NE(again.err.find("is there already"), std::string::npos) << again.err;
  const std::string progress = file_text(place_ / "runs/tiny/draft-train/metrics.jsonl");
  const ProcessResult refused =
      place_.run("make-draft --config run.yaml --set draft.layers=99 --fresh");
  EXPECT_EQ(refused.status, 2) << refused.err;
  EXPECT_EQ(file_text(place_ / "runs/tiny/draft-train/metrics.jsonl"), progress);
  const std::string steps = " --set draft.learning_rate=0.002 --json";  // another training
  const ProcessResult fresh =
      place_.run("make-draft --config run.yaml --set draft.layers=3 --fresh" + steps);
  ASSERT_EQ(fresh.status, 0) << fresh.err;
  EXPECT_GT(json::parse(fresh.out).at("steps"), 0);
  const ProcessResult found = place_.run("inspect runs/tiny/draft --json");
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(json::parse(found.out).at("kind"), "draft model");

  const json plain = answered("--drafter none");
  for (const char* drafter : {"draft_model", "specinfer", "sequoia"}) {
    const json drafted = answered(std::string("--drafter ") + drafter);
    EXPECT_EQ(drafted.at("tokens"), plain.at("tokens")) << drafter;
    EXPECT_GT(drafted.at("stats").at("accepted"), 0) << drafter;
  }
}

TEST_F(DraftModels, AnotherOneIsNotReplacedOnceItsTrainingIsGone) {
  const std::string make = "make-draft --config run.yaml --set draft.layers=";
  ASSERT_EQ(place_.run(make + "2").status, 0);
  std::filesystem::remove_all(place_ / "runs/tiny/draft-train");
  const std::string draft = file_text(place_ / "runs/tiny/draft/draft.json");
  const ProcessResult other = place_.run(make + "3");
  EXPECT_EQ(other.status, 2) << other.err;
  EXPECT_NE(other.err.find("holds a draft model of another dataset or other layers"),
            std::string::npos)
      << other.err;
  EXPECT_EQ(file_text(place_ / "runs/tiny/draft/draft.json"), draft);
  EXPECT_EQ(place_.run(make + "3 --fresh").status, 0);
}

TEST_F(DraftModels, AModelThatSomebodyNamedIsNeverWrittenTo) {
  write_text(place_ / "named/config.json", "somebody's");
  const ProcessResult made = place_.run(
      "make-draft --config run.yaml --set draft.layers=2 --set generate.draft_model.model=named "
      "--json");
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(json::parse(made.out).at("draft"), "runs/tiny/draft");
  EXPECT_EQ(file_text(place_ / "named/config.json"), "somebody's");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(place_ / "named"), {}), 1);
}

TEST_F(DraftModels, AnotherModelThatWritesTheSameTokensDrafts) {
  const std::string itself =
      "--drafter draft_model --set generate.draft_model.schedule=constant --set "
      "generate.draft_model.num_draft=3 --set generate.draft_model.model=" +
      CliFixture::model();
  const json stats = answered(itself).at("stats");
  EXPECT_EQ(stats.at("accepted"), stats.at("proposed")) << "the draft is the target";
  const ProcessResult together = place_.run(
      "bench --config run.yaml --questions prompts.jsonl --limit 4 --slots 4 --dtype float32 "
      "--methods draft_model --json --set generate.draft_model.model=" +
      CliFixture::model());
  ASSERT_EQ(together.status, 0) << together.err;
  const json rows = json::parse(together.out).at("rows");
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[1].at("same_text"), 1) << "it drafts for all four";
}

TEST_F(DraftModels, LayersThatMayBeSkippedAreFoundAndSkipped) {
  const ProcessResult found = place_.run("calibrate --config run.yaml --layers --json");
  ASSERT_EQ(found.status, 0) << found.err;
  const json choice = json::parse(found.out);
  EXPECT_FALSE(choice.at("skip").empty());
  EXPECT_GT(choice.at("agreement"), 0);
  EXPECT_EQ(answered("--drafter layer_skip").at("tokens"), answered("--drafter none").at("tokens"));
  const ProcessResult inspected = place_.run("inspect runs/tiny/layers.json --json");
  ASSERT_EQ(inspected.status, 0) << inspected.err;
  EXPECT_EQ(json::parse(inspected.out).at("skip"), choice.at("skip"));
}

TEST_F(DraftModels, WhatIsMissingOrDoesNotFitIsTheUsersError) {
  const auto error = [&](const std::string& options) {
    const ProcessResult ran = place_.run("generate --config run.yaml --prompt Once " + options);
    EXPECT_EQ(ran.status, 2) << options;
    return ran.err.substr(ran.err.find("medusa: "));
  };
  EXPECT_EQ(error("--drafter draft_model"),
            "medusa: runs/tiny/draft: not found, expected a draft model; make one with medusa "
            "make-draft, or name one with generate.draft_model.model\n");
  EXPECT_EQ(error("--drafter layer_skip"),
            "medusa: runs/tiny/layers.json: not found, expected the layers that drafting may skip; "
            "run medusa calibrate --layers, or list them in generate.layer_skip.skip\n");
  EXPECT_EQ(error("--drafter layer_skip --set generate.layer_skip.skip=[9]"),
            "medusa: generate.layer_skip.skip: layer 9, expected layers from 0 to 4; correct the "
            "list\n");
  const ProcessResult made = place_.run("make-draft --config run.yaml --set draft.layers=5");
  EXPECT_EQ(made.status, 2);
  EXPECT_NE(made.err.find("draft.layers is 5, the backbone has 5, expected fewer; lower "
                          "draft.layers"),
            std::string::npos)
      << made.err;
}

TEST(CalibrateOptions, LayersAreNotSoughtAndTokensPredictedAtOnce) {
  const CliFixture place;
  const ProcessResult both =
      place.run("calibrate --config run.yaml --layers --predict prompts.jsonl");
  EXPECT_EQ(both.status, 2);
  EXPECT_EQ(both.err,
            "medusa: calibrate: --predict excludes --layers; see medusa calibrate --help\n");
}

}  // namespace
}  // namespace medusa::cli
