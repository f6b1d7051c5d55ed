#include "runtime/heads_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <thread>

#include "base/file.h"
#include "base/yaml_fields.h"
#include "heads/heads_checkpoint.h"
#include "tests/base/error_text.h"
#include "tests/runtime/story_dataset.h"
#include "tests/runtime/story_model.h"
#include "tools/training/stages.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::kStoryModel;
using fixtures::story_options;

/// A dataset of the tiny model, whose states training computes.
class TrainedStories : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Model model = Model::load(kStoryModel, story_options());
    fingerprint_ = model.llama->weights().fingerprint;
    folder_.emplace();
    fixtures::write_story_dataset(*folder_ / "dataset", model, fingerprint_);
    fixtures::write_story_dataset(*folder_ / "strange", model, "sha256:aaaa0000");
  }
  static void TearDownTestSuite() { folder_.reset(); }

  /// @param name  of the folder with heads and work.
  static HeadsTrainerOptions options(const std::string& name) {
    HeadsTrainerOptions out;
    out.model = kStoryModel;
    out.loading = story_options();
    out.shape.num_heads = 2;
    out.shape.output = HeadOutput::Shared;
    out.training.optimizer = {.epochs = 2, .warmup_steps = 1};
    out.training.batch_positions = 16;
    out.training.validation_fraction = 0.3;
    out.training.reports = {.report_every = 1, .checkpoint_every = 2};
    out.heads = *folder_ / name / "heads";
    out.work = *folder_ / name / "train";
    return out;
  }

  static DatasetReader dataset(const std::string& name = "dataset") {
    return DatasetReader(*folder_ / name);
  }

  static std::string heads_of(const std::string& name) {
    return read_file(*folder_ / name / "heads/heads.safetensors");
  }

  static inline std::optional<fixtures::TempFolder> folder_;
  static inline std::string fingerprint_;
};

TEST_F(TrainedStories, MakesHeadsAndTellsEachReport) {
  HeadsTrainerOptions asked = options("whole");
  std::vector<Metrics> told;
  asked.reported = [&](const Metrics& each) { told.push_back(each); };
  std::vector<std::string> stages;
  asked.loading.progress = [&](const StageProgress& now) {
    if (now.finished) stages.push_back(now.stage);
  };
  const HeadsTrainer trainer(asked);
  const ResourceEstimate ahead = trainer.estimate_resources(dataset());
  EXPECT_FALSE(std::filesystem::exists(asked.work)) << "looking ahead keeps nothing";
  const TrainResult result = trainer.run(dataset());
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.steps, ahead.num_steps);
  EXPECT_EQ(result.validation.size(), 2U);
  const auto of_kind = [&](const std::string& kind) {
    return std::count_if(told.begin(), told.end(),
                         [&](const Metrics& each) { return each.kind == kind; });
  };
  EXPECT_EQ(of_kind("train"), result.steps);
  EXPECT_EQ(of_kind("validation"), 2);
  EXPECT_NE(std::find(stages.begin(), stages.end(), "load"), stages.end());
  EXPECT_NE(std::find(stages.begin(), stages.end(), "train"), stages.end());

  const HeadsManifest manifest = read_heads_manifest(asked.heads);
  EXPECT_EQ(manifest.backbone, fingerprint_);
  EXPECT_EQ(manifest.settings.find("seed: 1\ntrain:\n  heads:\n    num_heads: 2\n"), 0U)
      << manifest.settings;
}

TEST_F(TrainedStories, ARunThatAFunctionBrokeEndsAsAnUnbrokenOne) {
  HeadsTrainer(options("unbroken")).run(dataset());
  HeadsTrainerOptions asked = options("broken");
  asked.reported = [](const Metrics& each) {
    if (each.step == 3) throw std::out_of_range("own");
  };
  EXPECT_THROW(HeadsTrainer(asked).run(dataset()), std::out_of_range);
  EXPECT_FALSE(std::filesystem::exists(asked.heads));
  int64_t first = 0;
  asked.reported = [&](const Metrics& each) { first = first == 0 ? each.step : first; };
  EXPECT_TRUE(HeadsTrainer(asked).run(dataset()).complete);
  EXPECT_EQ(first, 3) << "it continued behind its last checkpoint";
  EXPECT_EQ(heads_of("broken"), heads_of("unbroken"));
  HeadsTrainer(options("unbroken")).run(dataset());
  EXPECT_EQ(heads_of("broken"), heads_of("unbroken")) << "a finished run is kept";
}

TEST_F(TrainedStories, HeadsMayBeginAsTheBackbonesLastLayer) {
  std::vector<double> losses;  // of head 0 at the end, on what it was trained on
  for (const HeadStart start : {HeadStart::Random, HeadStart::LastLayer}) {
    HeadsTrainerOptions asked = options(enum_name(start));
    asked.shape.input = HeadInput::Prefix;
    asked.shape.start = start;
    asked.training.optimizer.epochs = 8;
    asked.training.trunk_gradient = 0.25;
    losses.push_back(0);
    asked.reported = [&](const Metrics& each) {
      if (each.kind == "train") losses.back() = each.heads[0].loss;
    };
    ASSERT_TRUE(HeadsTrainer(asked).run(dataset()).complete);
  }
  EXPECT_LT(losses[1], 0.9 * losses[0]);
  EXPECT_EQ(read_heads_manifest(*folder_ / "last_layer/heads").config.start, HeadStart::LastLayer);

  HeadsTrainerOptions other = options("last_layer");
  other.shape.input = HeadInput::Prefix;
  other.training.optimizer.epochs = 8;
  other.training.trunk_gradient = 0.25;
  EXPECT_NE(error_text([&] { HeadsTrainer(other).run(dataset()); }).find("train.heads.start"),
            std::string::npos)
      << "another training cannot go on there";
}

TEST_F(TrainedStories, HeadsMayBeginWithThoseOfAnotherFolder) {
  std::vector<double> first;
  const auto train = [&](HeadsTrainerOptions asked) {
    first.push_back(0);
    asked.reported = [&](const Metrics& each) {
      if (each.kind == "train" && first.back() == 0) first.back() = each.loss;
    };
    return HeadsTrainer(asked).run(dataset()).complete;
  };
  ASSERT_TRUE(train(options("plain")));
  HeadsTrainerOptions corrected = options("corrected");
  corrected.shape.correction_rank = 32;
  corrected.begin_with = *folder_ / "plain/heads";
  ASSERT_TRUE(train(corrected));
  EXPECT_LT(first[1], first[0]);
  EXPECT_EQ(read_heads_manifest(corrected.heads).config.correction_rank, 32);
  corrected.work = *folder_ / "other/work";
  corrected.begin_with = *folder_ / "nowhere";
  EXPECT_NE(error_text([&] { HeadsTrainer(corrected).run(dataset()); }).find("nowhere"),
            std::string::npos);
}

TEST_F(TrainedStories, TheProgramTrainsTheSameHeadsAndContinuesTheLibrarysRun) {
  HeadsTrainerOptions asked = options("shared");
  RunConfig config;
  config.run = (*folder_ / "shared").string();
  static_cast<ModelOptions&>(config.backbone) = story_options();
  config.backbone.model = kStoryModel;
  config.train.heads = asked.shape;
  config.train.config = asked.training;
  asked.settings = write_config(config);
  asked.reported = [](const Metrics& each) {
    if (each.step == 3) throw std::out_of_range("own");
  };
  EXPECT_THROW(HeadsTrainer(asked).run(dataset()), std::out_of_range);
  int64_t reports = 0;
  const StageOptions counted{.reported = [&](const Metrics&) { ++reports; }};
  const TrainResult result = run_heads_stage(config, dataset(), counted);
  EXPECT_LT(reports, result.steps + 2) << "the program began anew";
  asked.reported = {};
  asked.heads = *folder_ / "alone/heads";
  asked.work = *folder_ / "alone/train";
  HeadsTrainer(asked).run(dataset());
  for (const char* file : {"heads/heads.safetensors", "heads/manifest.yaml", "heads/settings.yaml"})
    EXPECT_EQ(read_file(*folder_ / "shared" / file), read_file(*folder_ / "alone" / file)) << file;
}

TEST_F(TrainedStories, OptionsThatCannotWorkAreRefusedAtOnce) {
  const auto refusal = [](const std::function<void(HeadsTrainerOptions&)>& change) {
    HeadsTrainerOptions changed = options("refused");
    change(changed);
    return error_text([&] { HeadsTrainer trainer(changed); });
  };
  EXPECT_EQ(refusal([](auto&) {}), "(no error)");
  EXPECT_EQ(refusal([](auto& o) { o.work.clear(); }),
            "HeadsTrainerOptions::work: is empty, expected a path; name one");
  EXPECT_EQ(refusal([](auto& o) { o.training.batch_positions = 0; }),
            "train.batch_positions is 0, expected >= 1; correct it");
  EXPECT_EQ(refusal([](auto& o) { o.shape.num_heads = 0; }).find("train.heads.num_heads is 0"), 0U);
  EXPECT_EQ(refusal([](auto& o) { o.loading.context = 1; }).find("backbone.context is 1"), 0U);
}

TEST_F(TrainedStories, WhatDoesNotFitIsRefusedFromAnyThreadBeforeAnythingIsWritten) {
  HeadsTrainerOptions asked = options("misused");
  std::string found;
  std::jthread([&] {
    found = error_text(*folder_, [&] { HeadsTrainer(asked).run(dataset("strange")); });
  }).join();
  EXPECT_EQ(found.find("<>/strange: made with backbone sha256:aaaa0000, the one in "), 0U) << found;
  EXPECT_FALSE(std::filesystem::exists(*folder_ / "misused"));
  asked.model = *folder_ / "none.gguf";
  EXPECT_EQ(error_text(*folder_, [&] { HeadsTrainer(asked).run(dataset()); }).find("<>/none.gguf"),
            0U);

  asked = options("misused");
  make_folder(asked.heads);
  write_file(asked.heads / "thesis.txt", "years of work");
  EXPECT_EQ(error_text(*folder_, [&] { HeadsTrainer(asked).run(dataset()); }),
            "<>/misused/heads: holds files but no DONE, expected nothing there, an empty folder or "
            "one that medusa finished; move it or choose another folder");
  EXPECT_FALSE(std::filesystem::exists(asked.work));
  std::filesystem::remove_all(asked.heads);

  const HeadsTrainer* self = nullptr;
  asked.reported = [&](const Metrics&) { self->run(dataset()); };
  const HeadsTrainer trainer(asked);
  self = &trainer;
  EXPECT_EQ(
      error_text([&] { trainer.run(dataset()); }),
      "HeadsTrainer: called while a call of the same trainer runs on this thread, expected one "
      "after the other; leave the callback first");
}

// Each in its own folder, on threads of its own.
TEST_F(TrainedStories, TwoTrainersAtTheSameTimeDoWhatEachDoesAlone) {
  HeadsTrainer(options("one")).run(dataset());
  {
    std::vector<std::jthread> threads;
    for (const char* name : {"two", "three"})
      threads.emplace_back([name] { HeadsTrainer(options(name)).run(dataset()); });
  }
  EXPECT_EQ(heads_of("two"), heads_of("one"));
  EXPECT_EQ(heads_of("three"), heads_of("one"));
}

}  // namespace
}  // namespace medusa
