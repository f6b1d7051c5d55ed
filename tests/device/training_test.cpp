// Training on a device: gradients and losses are the CPU's, and what it leaves is what the CPU can
// go on with.
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "heads/heads_checkpoint.h"
#include "tests/device/test_devices.h"
#include "tests/train/child_run.h"
#include "tests/train/tiny_joint.h"
#include "train/draft_trainer.h"
#include "train/head_trainer.h"
#include "train/joint/drift_guard.h"
#include "train/processes/process_group.h"
#include "train/resource_estimate.h"

namespace medusa {
namespace {

struct Broken : std::runtime_error {
  Broken() : std::runtime_error("the run breaks off") {}
};

class TrainingOnDevice : public fixtures::OnDevice {
 protected:
  /// Two steps over some samples: their losses, and the first one's gradient as its first moment.
  struct Steps {
    std::vector<StepOutcome> reports;
    MedusaHeads heads;
  };

  static Steps train_twice(const TinyRun& run, at::Device where) {
    const Weights backbone = on_device(run.backbone, where);
    const DatasetReader dataset = run.open_data();
    std::vector<TokenId> kept;
    if (is_truncated(run.heads.output))
      for (TokenId token = 0; token < 100; ++token) kept.push_back(token);
    Steps out{{}, make_heads(run.heads, backbone, kept, 3)};
    const auto rows = rows_of_tokens(out.heads);
    const BatchRecipe recipe = batch_recipe(run.config, out.heads, backbone, rows);
    const ShuffleBuffer pool(dataset, std::vector<int64_t>{0, 1, 2, 3}, offline_hidden(dataset),
                             recipe);
    const std::vector<Batch> batches{pool.batch(all_positions(pool))};
    HeadTrainer trainer(run.config, out.heads, backbone);
    for (int i = 0; i < 2; ++i) out.reports.push_back(trainer.step(batches, 1e-3));
    return out;
  }

  static std::vector<double> losses(const TinyRun& run, const std::string& name) {
    std::vector<double> out;
    for (const auto& report : reports_in(run.metrics(name), "train"))
      out.push_back(report["loss_nats"]);
    return out;
  }

  static void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                          double tolerance) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], tolerance * expected[i]) << i;
  }
};
MEDUSA_ON_EVERY_DEVICE(TrainingOnDevice);

TEST_P(TrainingOnDevice, EveryKindOfHeadsAndLossMakesTheStepsOfTheCpu) {
  TinyRun run;
  for (const auto& [input_name, input] : EnumNames<HeadInput>::values)
    for (const auto& [output_name, output] : EnumNames<HeadOutput>::values)
      for (const auto& [label_name, labels] : EnumNames<LabelKind>::values)
        for (const auto& [objective_name, objective] : EnumNames<HeadObjective>::values) {
          const bool usual = labels == LabelKind::Soft && objective == HeadObjective::CrossEntropy;
          if (!usual && output != HeadOutput::TruncatedLowRank) continue;
          SCOPED_TRACE(std::string(input_name) + " " + output_name + " " + label_name + " " +
                       objective_name);
          run.heads.input = input;
          run.heads.output = output;
          run.heads.output_rank = 16;
          run.config.labels = labels;
          run.config.objective = objective;
          const Steps expected = train_twice(run, at::kCPU), found = train_twice(run, device());
          for (size_t i = 0; i < 2; ++i) {
            EXPECT_NEAR(found.reports[i].loss, expected.reports[i].loss, 1e-3);
            for (size_t k = 0; k < 3; ++k)
              EXPECT_EQ(found.reports[i].heads[k].num_labels,
                        expected.reports[i].heads[k].num_labels);
          }
          EXPECT_NEAR(found.reports[0].loss, expected.reports[0].loss,
                      1e-5 * expected.reports[0].loss);
          EXPECT_NEAR(found.reports[0].gradient_norm, expected.reports[0].gradient_norm,
                      1e-4 * expected.reports[0].gradient_norm);
        }
}

TEST_P(TrainingOnDevice, ARunHasTheLossesOfTheCpu) {
  for (const HeadInput input : {HeadInput::Root, HeadInput::PrefixSequential}) {
    TinyRun here, there(true, at::kFloat, device());
    for (TinyRun* run : {&here, &there}) {
      run->heads.input = input;
      run->config.keep_best = true;
    }
    const TrainResult expected = here.train("a"), found = there.train("a");
    ASSERT_TRUE(found.complete);
    expect_near(losses(there, "a"), losses(here, "a"), 1e-3);
    EXPECT_NEAR(found.validation[0].loss, expected.validation[0].loss, 1e-2);
    EXPECT_NO_THROW(load_heads(there.folder.path() / "a/heads", here.backbone));
  }
}

TEST_P(TrainingOnDevice, StatesThatItComputesAreTheRecordedOnes) {
  TinyRun run(true, at::kFloat, device());
  Llama llama(run.backbone, Kernels::Reference);
  const DatasetReader dataset = run.open_data();
  const HiddenSource online = online_hidden(dataset, llama), offline = offline_hidden(dataset);
  for (const int64_t sample : {0, 7}) {
    EXPECT_TRUE(online(sample).is_cpu());
    expect_close(online(sample).to(at::kFloat), offline(sample).to(at::kFloat), 0.01);
  }
  run.config.hidden = HiddenFrom::Online;
  EXPECT_TRUE(run.train("live", &llama).complete);
}

TEST_P(TrainingOnDevice, ABrokenRunEndsWithTheLossesOfAWholeOne) {
  TinyRun run(true, at::kFloat, device());
  run.config.optimizer.epochs = 4;
  run.config.reports.checkpoint_every = 3;
  run.train("whole");
  const DatasetReader dataset = run.open_data();
  int64_t reports = 0;
  const auto begin = [&] {
    train_heads(
        run.config, run.heads,
        {dataset, run.backbone, nullptr, run.folder.path() / "broken/heads",
         run.folder.path() / "broken/train", "settings of the run\n", [&reports](const Metrics&) {
           if (++reports == 8) throw Broken();
         }});
  };
  EXPECT_THROW(begin(), Broken);
  EXPECT_TRUE(run.train("broken").complete);
  expect_near(losses(run, "broken"), losses(run, "whole"), 1e-5);
}

TEST_P(TrainingOnDevice, ACheckpointOfOneDeviceIsContinuedOnTheOther) {
  TinyRun there(true, at::kFloat, device());
  there.config.optimizer.epochs = 4;
  there.train("whole");
  there.config.reports.checkpoint_every = 3;
  const DatasetReader dataset = there.open_data();
  int64_t reports = 0;
  EXPECT_THROW(train_heads(there.config, there.heads,
                           {dataset, there.backbone, nullptr, there.folder.path() / "moved/heads",
                            there.folder.path() / "moved/train", "settings of the run\n",
                            [&reports](const Metrics&) {
                              if (++reports == 8) throw Broken();
                            }}),
               Broken);
  there.backbone = on_device(there.backbone, at::kCPU);
  EXPECT_TRUE(there.train("moved").complete);
  expect_near(losses(there, "moved"), losses(there, "whole"), 1e-3);
}

TEST_P(TrainingOnDevice, Bfloat16IsTheCpusWithinRounding) {
  TinyRun here(true, at::kBFloat16), there(true, at::kBFloat16, device());
  for (TinyRun* run : {&here, &there}) run->heads.input = HeadInput::PrefixSequential;
  EXPECT_TRUE(here.train("a").complete);
  EXPECT_TRUE(there.train("a").complete);
  expect_near(losses(there, "a"), losses(here, "a"), 2e-2);
}

TEST_P(TrainingOnDevice, ADryRunLooksAhead) {
  const TinyRun run(true, at::kFloat, device());
  const DatasetReader dataset = run.open_data();
  const ResourceEstimate ahead =
      estimate_resources(run.config, run.heads,
                         {dataset, run.backbone, nullptr, run.folder / "h", run.folder / "w", ""});
  EXPECT_GT(ahead.first.lm_head_loss, 1);
  const TinyJoint joint(HeadOutput::TruncatedShared, device());
  const DatasetReader data = joint.open_data();
  const MedusaHeads first = joint.first_heads();
  EXPECT_GT(estimate_resources(joint.config, joint.joint,
                               {data, joint.backbone, first, "", run.folder / "j"})
                .first.lm_head_loss,
            1);
}

TEST_P(TrainingOnDevice, ADraftModelLearnsAsOnTheCpu) {
  const TinyRun here, there(true, at::kFloat, device());
  const DatasetReader dataset = here.open_data();
  DraftTrainConfig config;
  config.batch_tokens = 200;
  const std::vector<int64_t> layers{1};
  const auto train = [&](const Weights& backbone) {
    TrainableLlama draft(backbone, layers);
    const std::string name = backbone.lm_head.is_cpu() ? "draft-here" : "draft-there";
    const DraftTrainResult result = train_draft(
        config, {dataset, offline_hidden(dataset), backbone.fingerprint, 1, here.folder / name},
        draft);
    EXPECT_EQ(draft.weights().layers[0].qkv.device(), backbone.lm_head.device());
    return result.validation_loss;
  };
  EXPECT_NEAR(train(there.backbone), train(here.backbone), 1e-2);
}

/// Two processes that hold the same.
class DoubledGroup : public ProcessGroup {
 public:
  DoubledGroup() : ProcessGroup({.rank = 0, .world_size = 2}) {}
  std::string carrier() const override { return "a test"; }

 private:
  void add_up(const at::Tensor& values) override {
    EXPECT_TRUE(values.is_cpu());
    values.mul_(2);
  }
  void hand_out(const at::Tensor& values) override {
    EXPECT_TRUE(values.is_cpu());
    values.add_(1);
  }
};

/// Sums and copies pass through the CPU's memory.
TEST_P(TrainingOnDevice, ProcessesAddUpItsTensors) {
  DoubledGroup group;
  const at::Tensor values = at::full({5, 2}, 3, at::kFloat).to(device());
  group.all_reduce(values);
  expect_close(values, at::full({5, 2}, 6, at::kFloat));
  group.broadcast(values);
  expect_close(values, at::full({5, 2}, 7, at::kFloat));
}

class JointOnDevice : public TrainingOnDevice {
 protected:
  /// The first gradients of everything that is trained, with adapters moved away from their start.
  static std::map<std::string, at::Tensor> gradients(const TinyJoint& run) {
    TinyTrainer tiny(run);
    const c10::NoGradGuard no_grad;
    double phase = 0;
    for (const auto& [name, tensor] : tiny.trainer.parameters())
      at::Tensor(tensor).add_(at::sin(at::arange(tensor.numel(), at::kFloat) + ++phase)
                                  .view(tensor.sizes())
                                  .mul_(0.05)
                                  .to(tensor.device()));
    const std::vector<SampleBatch> batches{tiny.batch_of({0, 7}), tiny.batch_of({3})};
    tiny.trainer.step(batches, {1, 0.7, /*learning_rate=*/0});
    return tiny.gradients();
  }
};
MEDUSA_ON_EVERY_DEVICE(JointOnDevice);

TEST_P(JointOnDevice, GradientsOfEveryPartAreTheCpus) {
  TinyJoint here, there(HeadOutput::TruncatedShared, device());
  for (const HeadInput input : {HeadInput::Root, HeadInput::PrefixSequential})
    for (const auto& [name, part] : EnumNames<TrainedPart>::values)
      for (const auto& [loss_name, loss] : EnumNames<BackboneLoss>::values) {
        SCOPED_TRACE(std::string(name) + " " + loss_name);
        const auto of = [&](TinyJoint& run) {
          run.heads.input = input;
          run.joint.part = part;
          run.joint.last_layers = 1;
          run.joint.backbone_loss = loss;
          run.joint.optimizer.clip_norm = 1e9;
          run.joint.lora.dropout = 0;
          run.joint.lora.targets = all_targets();
          return gradients(run);
        };
        const auto expected = of(here), found = of(there);
        ASSERT_EQ(found.size(), expected.size());
        for (const auto& [parameter, gradient] : expected) {
          SCOPED_TRACE(parameter);
          EXPECT_EQ(found.at(parameter).device(), device());
          const double size = gradient.abs().max().item<double>();
          EXPECT_LE((found.at(parameter).cpu() - gradient).abs().max().item<double>(),
                    1e-4 * size + 1e-6);
        }
      }
}

TEST_P(JointOnDevice, ASeedDecidesWhatDropoutLeavesOut) {
  const auto of = [&](double dropout) {
    TinyJoint run(HeadOutput::TruncatedShared, device());
    run.joint.lora.dropout = dropout;
    return gradients(run).at("layers.1.down_proj.b").cpu();
  };
  const at::Tensor once = of(0.3);
  EXPECT_TRUE(at::allclose(of(0.3), once, 1e-5, 1e-7));
  EXPECT_FALSE(at::allclose(of(0), once, 1e-2, 1e-7));
}

TEST_P(JointOnDevice, ARunIsGuardedBrokenOffAndContinued) {
  TinyJoint here, run(HeadOutput::TruncatedShared, device());
  for (TinyJoint* each : {&here, &run}) {
    each->joint.lora.targets = all_targets();
    each->joint.lora.dropout = 0;  // a GPU leaves out other numbers
    each->joint.max_steps = 6;
  }
  const JointResult expected = here.train_jointly("whole"), whole = run.train_jointly("whole");
  ASSERT_TRUE(whole.complete);
  expect_near(losses(run, "whole"), losses(here, "whole"), 1e-3);
  EXPECT_NEAR(whole.drift->kl, expected.drift->kl, 1e-3);
  EXPECT_EQ(whole.drift->answers, expected.drift->answers);
  EXPECT_EQ(whole.backbone.lm_head.device(), device());

  const DatasetReader dataset = run.open_data();
  const MedusaHeads first = run.first_heads();
  int64_t reports = 0;
  EXPECT_THROW(
      train_joint(run.config, run.joint,
                  {dataset, run.backbone, first, "sha256:5", run.folder.path() / "broken/train",
                   [&reports](const Metrics&) {
                     if (++reports == 6) throw Broken();
                   }}),
      Broken);
  const JointResult continued = run.train_jointly("broken");
  EXPECT_LT(continued.positions, whole.positions);
  EXPECT_NEAR(continued.loss, whole.loss, 1e-4);
  EXPECT_NEAR(continued.drift->kl, whole.drift->kl, 1e-4);
}

}  // namespace
}  // namespace medusa
