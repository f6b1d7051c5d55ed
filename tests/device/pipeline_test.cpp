// The whole way on one device, as the commands call it: distil, train, calibrate, decode; and what
// times and judges models there.
#include <gtest/gtest.h>

#include "heads/draft_temperature.h"
#include "heads/head_statistics.h"
#include "heads/heads_checkpoint.h"
#include "heads/tree/tree_search.h"
#include "infer/backbone_target.h"
#include "infer/factory.h"
#include "runtime/generation.h"
#include "runtime/measure/row_timer.h"
#include "runtime/measure/step_timer.h"
#include "tests/device/test_devices.h"
#include "tests/train/tiny_run.h"
#include "tools/measure/acceptance.h"
#include "tools/measure/layer_search.h"
#include "tools/measure/resources.h"
#include "tools/profile/profile.h"

namespace medusa {
namespace {

class PipelineOnDevice : public fixtures::OnDevice {
 protected:
  static constexpr int64_t kRows = 96;

  /// Lets the model answer a few prompts, three at a time, and records its states.
  static void distil(Llama& llama, const std::filesystem::path& folder) {
    std::vector<DistillPrompt> prompts;
    for (uint64_t i = 0; i < 12; ++i)
      prompts.push_back({std::to_string(i), random_tokens(i, 4 + static_cast<int64_t>(i % 3))});
    BackboneTarget target(llama, 3, kRows);
    const int64_t hidden_size = llama.config().hidden_size;
    SamplingConfig sampling;
    sampling.temperature = 0.7;
    DatasetWriter writer(folder,
                         {llama.weights().fingerprint, "sha256:70", fingerprint_prompts(prompts),
                          "", 1, llama.config().vocab_size, hidden_size, StateFormat::Bfloat16, 0},
                         std::ssize(prompts), 4);
    self_distill(prompts, make_generate_function(target, sampling, {}, hidden_size),
                 {.max_new_tokens = 30, .max_sequence = kRows}, Random(1), writer);
  }

  static TrainConfig settings() {
    TrainConfig config;
    config.optimizer.epochs = 3;
    config.batch_positions = 100;
    config.validation_fraction = 0.3;
    config.reports.report_every = 1;
    return config;
  }

  /// What the heads draft of the dataset's text.
  static HeadStatistics count(const DatasetReader& dataset, HeadsRunner& runner) {
    HeadStatistics statistics(runner.num_heads(), runner.top_k());
    TemperatureFit temperatures(runner.num_heads());
    const HiddenSource hidden = offline_hidden(dataset);
    for (int64_t sample = 0; sample < dataset.size(); ++sample) {
      const auto answer = dataset.answer(sample);
      const HeadDrafts& drafts = runner.draft_along(
          hidden(sample).narrow(0, 0, std::ssize(answer) - runner.num_heads()), answer);
      statistics.add_answer(drafts.tokens, answer);
      temperatures.add_answer(drafts, answer);
    }
    EXPECT_EQ(std::ssize(temperatures.temperatures()), runner.num_heads());
    return statistics;
  }
};
MEDUSA_ON_EVERY_DEVICE(PipelineOnDevice);

TEST_P(PipelineOnDevice, ItsDatasetIsTheCpus) {
  const fixtures::TempFolder folder;
  for (const at::Device where : {at::Device(at::kCPU), device()}) {
    Llama llama(on_device(tiny_weights(1), where), Kernels::Reference);
    distil(llama, folder.path() / where.str());
  }
  const DatasetReader expected(folder.path() / "cpu"), found(folder.path() / device().str());
  ASSERT_EQ(found.size(), expected.size());
  for (int64_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(found.tokens(i), expected.tokens(i))) << i;
    expect_close(offline_hidden(found)(i).to(at::kFloat),
                 offline_hidden(expected)(i).to(at::kFloat), 0.01);
  }
}

TEST_P(PipelineOnDevice, HeadsAreTrainedCalibratedAndDecodeThePlainText) {
  for (const auto& [input, dtype] : {std::pair{HeadInput::Root, at::kFloat},
                                     std::pair{HeadInput::PrefixSequential, at::kBFloat16}}) {
    const fixtures::TempFolder folder;
    const Weights backbone = on_device(tiny_weights(1, tiny_config(), dtype), device());
    Llama llama(backbone);
    distil(llama, folder / "dataset");
    const DatasetReader dataset(folder / "dataset");
    HeadsConfig heads;
    heads.input = input;
    heads.num_heads = 3;
    heads.output_size = 100;
    const TrainResult trained =
        train_heads(settings(), heads,
                    {dataset, backbone, nullptr, folder / "heads", folder / "train", "settings\n"});
    ASSERT_TRUE(trained.complete);

    const LoadedHeads loaded = load_heads(folder / "heads", backbone);
    HeadsRunner runner(loaded.heads, backbone, 5);
    const HeadStatistics statistics = count(dataset, runner);
    std::vector<RankPath> paths;
    for (const PathValue& each : rank_paths(statistics, 9)) paths.push_back(each.path);
    BackboneTarget target(llama, 1, kRows);
    const StepTimes times = time_steps(target, runner, paths, random_tokens(1, 20), {1, 4, 10}, 1);
    for (const double ms : times.step_ms) EXPECT_GT(ms, 0);

    const TreeShape shape = make_choice_tree(paths, 5, "the tree of the test").shape();
    DraftParts parts;
    parts.runner = &runner;
    parts.shape = &shape;
    const auto decode_with = [&](DrafterKind drafter) {
      InferConfig config;
      config.drafter = drafter;
      return decode_greedy(target, make_drafter_factory(config, parts), random_tokens(5, 6),
                           {40, 16, {}}, /*keep_hidden=*/true);
    };
    GreedyAnswer plain = decode_with(DrafterKind::None);
    const GreedyAnswer fast = decode_with(DrafterKind::Medusa);
    if (dtype == at::kFloat) {  // rows of bfloat16 products depend on each other on a GPU
      EXPECT_EQ(fast.tokens, plain.tokens);
    }
    HeadStatistics of_answer(runner.num_heads(), runner.top_k());
    add_drafts(of_answer, runner, plain);
    EXPECT_EQ(of_answer.num_positions(), 37);
  }
}

TEST_P(PipelineOnDevice, StepsAreTimedAndProfiled) {
  const Weights backbone = on_device(tiny_weights(1), device());
  Llama llama(backbone, Kernels::Reference);
  const std::vector<double> rows = time_rows(llama);
  EXPECT_EQ(rows.size(), 32U);
  EXPECT_GT(rows.front(), 0);
  const Profile profile =
      profile_steps(llama, {.rows = {1, 8}, .contexts = {20}, .repeats = 1}, nullptr);
  ASSERT_EQ(profile.steps.size(), 2U);
  for (const ProfiledStep& step : profile.steps) {
    ASSERT_TRUE(step.launches);
    EXPECT_EQ(step.launches->kernels, 0) << "the plain path has none of ours";
    EXPECT_GT(step.launches->ops, 2 * 10) << "two layers";
  }
}

TEST_P(PipelineOnDevice, ItsMemoryIsCounted) {
  const at::TensorOptions there = at::device(device()).dtype(at::kByte);
  const at::Tensor kept = at::empty({1 << 20}, there);
  reset_peak_memory(device());
  const int64_t before = peak_memory(device()).device.value();
  EXPECT_GE(before, 1 << 20);
  at::empty({3 << 20}, there).reset();
  const PeakMemory after = peak_memory(device());
  EXPECT_GE(after.device, before + (3 << 20));
  EXPECT_LT(after.device, before + (4 << 20));
  EXPECT_EQ(after.where_computed(), after.device);
  reset_peak_memory(device());
  EXPECT_EQ(peak_memory(device()).device, before);
}

TEST_P(PipelineOnDevice, LayersThatMayBeLeftOutAreFound) {
  Llama llama(on_device(tiny_weights(1), device()), Kernels::Reference);
  const std::vector<AnsweredText> texts{{random_tokens(1, 30), 8}, {random_tokens(2, 20), 1}};
  const LayerCosts costs = time_layers(llama);
  EXPECT_GT(costs.layer, 0);
  const LayerChoice choice = search_layers(llama, texts, costs);
  EXPECT_GE(choice.agreement, 0);
}

}  // namespace
}  // namespace medusa
