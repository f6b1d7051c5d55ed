#include "train/joint/joint_trainer.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/train/tiny_joint.h"

namespace medusa {
namespace {

constexpr double kWeight = 0.7;  // of the heads

/// Adapters start with B = 0, where A has no gradient: moves everything a little away from there.
void disturb(const NamedTensors& parameters) {
  const c10::NoGradGuard no_grad;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(9);
  for (const auto& [name, tensor] : parameters)
    at::Tensor(tensor).add_(at::randn(tensor.sizes(), generator, at::kFloat), 0.05);
}

double loss_of(TinyTrainer& tiny, const std::vector<SampleBatch>& batches) {
  return tiny.trainer.step(batches, {1, kWeight, /*learning_rate=*/0}).loss;
}

/// Along each tensor's gradient, where the change is largest and float32 sees it best.
void expect_numeric_gradients(const TinyJoint& run) {
  TinyTrainer tiny(run);
  disturb(tiny.trainer.parameters());
  const std::vector<SampleBatch> batches{tiny.batch_of({0, 7}), tiny.batch_of({3})};
  loss_of(tiny, batches);
  const auto gradients = tiny.gradients();
  const c10::NoGradGuard no_grad;
  for (const auto& [name, parameter] : tiny.trainer.parameters()) {
    const at::Tensor& gradient = gradients.at(name);
    const double expected = gradient.norm().item<double>();
    ASSERT_GT(expected, 1e-4) << name;
    const at::Tensor direction = gradient / expected;
    const double step = 2e-3 * std::max(parameter.norm().item<double>(), 0.5);
    at::Tensor values = parameter;
    values.add_(direction, step);
    const double above = loss_of(tiny, batches);
    values.sub_(direction, 2 * step);
    const double below = loss_of(tiny, batches);
    values.add_(direction, step);
    EXPECT_NEAR((above - below) / (2 * step), expected, 0.03 * expected) << name;
  }
}

struct Unclipped : TinyJoint {
  explicit Unclipped(HeadOutput output) : TinyJoint(output) { joint.optimizer.clip_norm = 1e9; }
};

TEST(JointTrainer, GradientsOfAdaptersAndHeadsAreTheNumericOnes) {
  Unclipped run(HeadOutput::TruncatedShared);
  run.joint.lora.targets = all_targets();
  expect_numeric_gradients(run);
}

TEST(JointTrainer, GradientsOfAllLayersAreTheNumericOnes) {
  Unclipped run(HeadOutput::Shared);
  run.joint.part = TrainedPart::AllLayers;
  run.joint.backbone_loss = BackboneLoss::Text;
  run.config.labels = LabelKind::Hard;
  expect_numeric_gradients(run);
}

TEST(JointTrainer, GradientsOfTheLastLayersAndOwnOutputsAreTheNumericOnes) {
  Unclipped run(HeadOutput::Own);
  run.joint.part = TrainedPart::LastLayers;
  run.joint.last_layers = 1;
  run.heads.input = HeadInput::Sequential;
  expect_numeric_gradients(run);
}

TEST(JointTrainer, GradientsThroughAPrefixLayerAreTheNumericOnes) {
  Unclipped run(HeadOutput::TruncatedShared);
  run.heads.input = HeadInput::PrefixSequential;
  expect_numeric_gradients(run);
}

TEST(JointTrainer, GradientsOfLowRankOutputsAreTheNumericOnes) {
  Unclipped run(HeadOutput::TruncatedLowRank);
  run.heads.output_rank = 32;
  expect_numeric_gradients(run);
}

TEST(JointTrainer, BeforeTheFirstStepTheBackboneIsItself) {
  const TinyJoint run;
  TinyTrainer tiny(run);
  const std::vector<SampleBatch> batches{tiny.batch_of({0, 1})};
  const JointReport report = tiny.trainer.step(batches, {0, kWeight, 1e-3});
  EXPECT_NEAR(report.backbone_loss, 0, 1e-6);
  EXPECT_GT(tiny.trainer.step(batches, {1, kWeight, 1e-3}).backbone_loss, 1e-6);
}

TEST(JointTrainer, TheLossIsTheBackbonesAndTheHeadsTimesTheirWeight) {
  TinyJoint run;
  run.joint.backbone_loss = BackboneLoss::Text;
  run.config.labels = LabelKind::Hard;
  TinyTrainer tiny(run);
  const std::vector<SampleBatch> batches{tiny.batch_of({0, 1})};
  const JointReport report = tiny.trainer.step(batches, {0, kWeight, 1e-3});
  double heads = 0, lambda = 1;
  for (const HeadLoss& head : report.heads) {
    heads += lambda * head.loss / static_cast<double>(head.num_labels);
    lambda *= 0.8;
  }
  EXPECT_NEAR(report.loss, report.backbone_loss + kWeight * heads, 1e-9);
}

// The authors' trainer meant to leave prompts out of the loss and did not: its test was true for
// every token; and it divided the backbone's KL by all positions, the heads' losses by some.
TEST(JointTrainer, OnlyAnswersCountInEveryMean) {
  TinyJoint run;
  run.joint.backbone_loss = BackboneLoss::Text;
  run.config.labels = LabelKind::Hard;
  run.heads.output = HeadOutput::Shared;
  TinyTrainer tiny(run);
  const std::vector<int64_t> samples{1, 4};  // prompts of 2 and 5 tokens
  const JointReport report =
      tiny.trainer.step(std::vector<SampleBatch>{tiny.batch_of(samples)}, {0, kWeight, 0});
  const c10::NoGradGuard no_grad;
  double loss = 0;
  int64_t count = 0;
  for (const int64_t sample : samples) {
    const auto all = tiny.dataset.tokens(sample);
    const PackedTexts text = tiny.llama.pack(all, std::vector<int64_t>{std::ssize(all)});
    const at::Tensor log_probs =
        at::log_softmax(at::linear(tiny.llama.forward_original(text), run.backbone.lm_head), 1);
    for (int64_t i = tiny.dataset.answer_start(sample); i < std::ssize(all); ++i, ++count)
      loss -= log_probs[i - 1][all[static_cast<size_t>(i)]].item<double>();
  }
  EXPECT_NEAR(report.backbone_loss, loss / static_cast<double>(count), 1e-5);
  for (size_t k = 0; k < 3; ++k)  // two answers, whose last k + 1 positions have no label
    EXPECT_EQ(report.heads[k].num_labels, count - 2 * static_cast<int64_t>(k + 1));
}

TEST(JointTrainer, AccumulatedBatchesMakeTheStepOfOneLargeBatch) {
  TinyJoint run;
  run.joint.lora.dropout = 0;
  run.joint.lora.targets = all_targets();
  TinyTrainer whole(run), parts(run);
  disturb(whole.trainer.parameters());
  disturb(parts.trainer.parameters());
  const JointReport one =
      whole.trainer.step(std::vector<SampleBatch>{whole.batch_of({0, 1, 2})}, {0, kWeight, 1e-3});
  const JointReport three = parts.trainer.step(
      std::vector<SampleBatch>{parts.batch_of({0}), parts.batch_of({1}), parts.batch_of({2})},
      {0, kWeight, 1e-3});
  EXPECT_NEAR(one.loss, three.loss, 1e-5);
  EXPECT_NEAR(one.gradient_norm, three.gradient_norm, 1e-4);
}

// The authors' trainer leaves the heads' biases at the backbone's rate.
TEST(JointTrainer, AllOfTheHeadsLearnsAtTheMultipleOfTheRate) {
  TinyJoint run;
  run.joint.head_rate_multiple = 4;
  TinyTrainer tiny(run);
  NamedTensors before;
  for (const auto& [name, tensor] : tiny.trainer.parameters())
    before.emplace_back(name, tensor.detach().clone());
  tiny.trainer.step(std::vector<SampleBatch>{tiny.batch_of({0, 1, 2, 3})}, {0, kWeight, 1e-3});
  const auto after = tiny.trainer.parameters();
  bool saw_bias = false;
  for (size_t i = 0; i < after.size(); ++i) {
    // AdamW's first step moves every number that has a gradient by the rate.
    const double moved = (after[i].second - before[i].second).abs().max().item<double>();
    const std::string& name = after[i].first;
    saw_bias |= name.ends_with(".bias");
    if (moved > 0)
      EXPECT_NEAR(moved, name.starts_with("heads.") ? 4e-3 : 1e-3, 1e-4) << name;
    else  // those that wait for the other half of their product
      EXPECT_TRUE(name.ends_with(".a") || name.starts_with("heads.")) << name;
  }
  EXPECT_TRUE(saw_bias);
}

TEST(JointTrainer, ALossThatIsNoNumberChangesNothing) {
  const TinyJoint run;
  TinyTrainer tiny(run);
  {
    const c10::NoGradGuard no_grad;
    at::Tensor(tiny.heads.blocks[0].weight)[0][0] = std::nan("");
  }
  const at::Tensor before = tiny.heads.blocks[1].second.detach().clone();
  const JointReport report =
      tiny.trainer.step(std::vector<SampleBatch>{tiny.batch_of({0})}, {0, kWeight, 1e-3});
  EXPECT_TRUE(std::isnan(report.gradient_norm));
  EXPECT_TRUE(at::equal(tiny.heads.blocks[1].second, before));
}

}  // namespace
}  // namespace medusa
