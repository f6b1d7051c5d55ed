#include "train/resource_estimate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/base/error_text.h"
#include "tests/train/tiny_joint.h"

namespace medusa {
namespace {

TEST(ResourceEstimate, CountsWhatTheHeadsStageWillDo) {
  const TinyRun run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  const TrainInputs inputs{
      dataset, run.backbone, nullptr, run.folder.path() / "a/heads", run.folder.path() / "a/train",
      ""};
  const ResourceEstimate flight = estimate_resources(run.config, run.heads, inputs);
  const TrainResult result = train_heads(run.config, run.heads, inputs);
  EXPECT_EQ(flight.num_steps, result.steps);
  EXPECT_EQ(flight.num_positions, result.positions);
  // 3 heads of W1 [64, 128], b1 [64], W2 [64, 64].
  EXPECT_EQ(flight.num_parameters, 3 * (64 * 128 + 64 + 64 * 64));
  EXPECT_GE(total_bytes(flight.memory), 16 * flight.num_parameters);
  EXPECT_GE(total_bytes(flight.disk), 24 * flight.num_parameters);
  EXPECT_GT(flight.seconds(), flight.first.seconds);
  EXPECT_NEAR(flight.first.uniform_loss, std::log(130), 1e-9);
  EXPECT_GT(flight.first.heads[0].quality().loss, 0);
}

TEST(ResourceEstimate, CountsWhatTheJointStageWillDoAndKeepsNothing) {
  TinyJoint run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  const MedusaHeads heads = run.first_heads();
  const at::Tensor before = heads.blocks[0].weight.clone();
  const JointInputs inputs{dataset, run.backbone, heads, "sha256:5", run.folder.path() / "a/train"};
  const ResourceEstimate flight = estimate_resources(run.config, run.joint, inputs);
  EXPECT_TRUE(at::equal(heads.blocks[0].weight, before));
  EXPECT_FALSE(std::filesystem::exists(run.folder.path() / "a"));
  const JointResult result = train_joint(run.config, run.joint, inputs);
  EXPECT_EQ(flight.num_steps, result.steps);
  EXPECT_EQ(flight.num_positions, result.positions);
  // Rank 4 beside q, k, v, o, gate, up and down of two layers.
  const int64_t adapters =
      2 * 4 * ((64 + 128) + (64 + 64) + (64 + 64) + (128 + 64) + (64 + 96) + (64 + 96) + (96 + 64));
  EXPECT_EQ(flight.num_parameters, adapters + 3 * (64 * 128 + 64 + 64 * 64));
}

TEST(ResourceEstimate, WarnsOfAnswersThatTheBackboneDoesNotKnow) {
  const TinyRun run;  // whose backbone is random and whose text is not its own
  const DatasetReader dataset(run.folder.path() / "dataset");
  const TrainInputs inputs{dataset, run.backbone, nullptr, "", "", ""};
  const ResourceEstimate flight = estimate_resources(run.config, run.heads, inputs);
  const auto warnings = flight.warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(warnings[0].starts_with("the backbone's own loss on these answers is "))
      << warnings[0];
  EXPECT_TRUE(
      warnings[0].ends_with(" nats, that of knowing nothing 4.87: are these its answers, "
                            "with its tokenizer and template?"))
      << warnings[0];
  ResourceEstimate good = flight;
  good.first.lm_head_loss = 1;
  EXPECT_TRUE(good.warnings().empty());
}

/// What training would refuse is refused before anything is reckoned from it.
TEST(ResourceEstimate, RefusesWhatTrainingRefuses) {
  TinyJoint run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  const MedusaHeads heads = run.first_heads();
  const auto by_heads = [&] {
    return fixtures::error_text([&] {
      estimate_resources(run.config, run.heads, {dataset, run.backbone, nullptr, "", "", ""});
    });
  };
  run.heads.output_size = 131;
  EXPECT_EQ(by_heads(),
            "heads: 'output_size' is 131, the backbone's vocabulary has 130 tokens, expected at "
            "most that many; lower it, or set 'output' to shared or own");
  run.backbone.fingerprint = "tiny:2";
  const std::string other =
      "train: the dataset was written by the backbone tiny:1, the backbone given is tiny:2, "
      "expected the same one; pass the other backbone or distil again";
  EXPECT_EQ(by_heads(), other);
  const JointInputs inputs{dataset, run.backbone, heads, "sha256:5", ""};
  EXPECT_EQ(fixtures::error_text([&] { estimate_resources(run.config, run.joint, inputs); }),
            other);
}

TEST(ResourceEstimate, SaysWhichTensorIsNoNumber) {
  TinyJoint run;
  run.backbone.layers[0].qkv = run.backbone.layers[0].qkv.clone();
  run.backbone.layers[0].qkv[1][2] = std::nan("");
  const DatasetReader dataset(run.folder.path() / "dataset");
  const MedusaHeads heads = run.first_heads();
  const JointInputs inputs{dataset, run.backbone, heads, "sha256:5", ""};
  const std::string text =
      fixtures::error_text(run.folder, [&] { estimate_resources(run.config, run.joint, inputs); });
  EXPECT_NE(text.find("the loss is nan, and so is something in layers.0.qkv, expected a finite "
                      "number; download or make that file again, or distil again"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace medusa
