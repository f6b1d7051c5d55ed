#include "train/record/run_identity.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "heads/heads_config.h"
#include "tests/base/error_text.h"
#include "train/draft_config.h"
#include "train/joint/joint_config.h"
#include "train/train_config.h"

namespace medusa {
namespace {

/// The keys of a section that change nothing of what a run makes, one after the other; all others
/// decide.
template <typename Config>
std::string cosmetic_keys(const std::string& section, size_t expected_deciding,
                          Config config = {}) {
  FieldLister lister(section);
  config.fields(lister);
  std::string cosmetic;
  size_t deciding = 0;
  for (const FieldHelp& line : lister.lines())
    if (line.decides)
      ++deciding;
    else
      cosmetic += (cosmetic.empty() ? "" : " ") + line.key;
  EXPECT_EQ(deciding, expected_deciding)
      << section << " has a new field. Does it change what a run makes? Then count it here. If it "
      << "only changes what is shown or kept, mark it as cosmetic().";
  return cosmetic;
}

TEST(RunIdentity, EveryFieldOfTheThreeStagesSaysWhetherItDecides) {
  EXPECT_EQ(cosmetic_keys<TrainConfig>("train", 19),
            "train.keep_checkpoints train.peer_timeout_s train.report_every "
            "train.checkpoint_every");
  EXPECT_EQ(cosmetic_keys<SharedTrainConfig>("train", 8),
            "train.keep_checkpoints train.peer_timeout_s");
  EXPECT_EQ(cosmetic_keys<HeadsConfig>("heads", 6), "heads.start heads.output_rank");
  EXPECT_EQ(cosmetic_keys<JointConfig>("joint", 24),
            "joint.heads joint.last_layers joint.report_every joint.checkpoint_every");
  EXPECT_EQ(cosmetic_keys<DraftTrainConfig>("draft", 11),
            "draft.validation_samples draft.report_every draft.checkpoint_every");
  // What is of no effect decides nothing.
  EXPECT_EQ(cosmetic_keys("heads", 6, HeadsConfig{.output = HeadOutput::LowRank}),
            "heads.start heads.output_size");
  EXPECT_EQ(cosmetic_keys("heads", 7, HeadsConfig{.input = HeadInput::Prefix}),
            "heads.output_rank");
  JointConfig last_layers;
  last_layers.part = TrainedPart::LastLayers;
  EXPECT_EQ(cosmetic_keys("joint", 25, last_layers),
            "joint.heads joint.report_every joint.checkpoint_every");
}

/// An identity with the settings of the heads' stage.
RunIdentity identity_with(const TrainConfig& config, const HeadsConfig& heads = {}) {
  RunIdentity identity{"seed=1"};
  identity.add_settings("train", config);
  identity.add_settings("train.heads", heads);
  return identity;
}

std::string difference(const RunIdentity& now, const std::vector<std::string>& saved) {
  return fixtures::error_text([&] { now.check("c", saved); });
}

TEST(RunIdentity, CosmeticSettingsMayChange) {
  TrainConfig config;
  const auto saved = identity_with(config).entries();
  config.reports = {.report_every = 3, .checkpoint_every = 7};
  config.keep_checkpoints = 5;
  config.peer_timeout_s = 1;
  EXPECT_EQ(difference(identity_with(config), saved), "(no error)");
  EXPECT_EQ(difference(identity_with(config, {.output_rank = 96}), saved), "(no error)")
      << "the output has no rank";
  EXPECT_EQ(difference(identity_with(config, {.output_size = 96}), saved),
            "c: the checkpoint was made with train.heads.output_size 8192, this run has "
            "train.heads.output_size 96, expected the same; set it back to continue, or train anew "
            "with --fresh");
}

TEST(RunIdentity, ASettingThatCameLaterHasItsDefault) {
  TrainConfig config;
  auto saved = identity_with(config).entries();
  std::erase(saved, "train.schedule=cosine");
  EXPECT_EQ(difference(identity_with(config), saved), "(no error)");
  config.optimizer.schedule = RateSchedule::Linear;
  EXPECT_EQ(difference(identity_with(config), saved),
            "c: the checkpoint was made with train.schedule cosine, this run has train.schedule "
            "linear, expected the same; set it back to continue, or train anew with --fresh");
}

/// As the program before this one wrote it: cosmetic settings with their defaults, too, and
/// all of the heads' stage in a checkpoint of the joint one.
TEST(RunIdentity, WhatAnEarlierProgramKeptIsTheSameRun) {
  auto saved = identity_with({}).entries();
  saved.insert(saved.begin() + 3, {"train.report_every=20", "train.checkpoint_every=200"});
  std::reverse(saved.begin() + 1, saved.end());
  EXPECT_EQ(difference(identity_with({}), saved), "(no error)");

  RunIdentity joint;
  joint.add_settings("train", SharedTrainConfig());
  joint.ignore_settings<TrainConfig>("train");
  EXPECT_EQ(difference(joint, {"train.epochs=2", "train.batch_positions=256", "train.labels=soft",
                               "train.report_every=20"}),
            "(no error)");
  saved.push_back("train.magic=3");
  EXPECT_EQ(difference(identity_with({}), saved),
            "c: the checkpoint was made with train.magic 3, this run has no train.magic, "
            "expected the same; set it back to continue, or train anew with --fresh");
}

TEST(RunIdentity, ThreadsAreKeptButNotCompared) {
  RunIdentity two = identity_with({}), one = two;
  two.set_threads(2);
  one.set_threads(1);
  EXPECT_EQ(threads_in(two.entries()), 2);
  EXPECT_EQ(threads_in(identity_with({}).entries()), 0);
  EXPECT_EQ(difference(one, two.entries()), "(no error)");
  EXPECT_EQ(difference(identity_with({}), two.entries()), "(no error)");
  EXPECT_EQ(one.fingerprint(), two.fingerprint());
}

TEST(RunIdentity, ADatasetMoreOrLessIsAnotherRun) {
  const RunIdentity one{"seed=1", "the dataset=sha256:aa"};
  const RunIdentity two{"seed=1", "the dataset=sha256:aa", "dataset 2=sha256:bb"};
  EXPECT_EQ(difference(one, one.entries()), "(no error)");
  EXPECT_TRUE(difference(one, two.entries())
                  .starts_with("c: the checkpoint was made with dataset 2 sha256:bb, this run has "
                               "no dataset 2, expected the same; "));
  EXPECT_TRUE(difference(two, one.entries())
                  .starts_with("c: the checkpoint was made with no dataset 2, this run has "
                               "dataset 2 sha256:bb, expected the same; "));
}

}  // namespace
}  // namespace medusa
