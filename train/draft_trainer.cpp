#include "train/draft_trainer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "data/dataset/dataset_mix.h"
#include "data/dataset/sample_order.h"
#include "train/adamw.h"
#include "train/loss/loss.h"
#include "train/loss/soft_labels.h"
#include "train/lr_schedule.h"
#include "train/samples/sample_batches.h"

namespace medusa {
namespace {

class DraftRun {
 public:
  DraftRun(const DraftTrainConfig& config, const DatasetReader& dataset, const HiddenSource& hidden,
           TrainableLlama& draft)
      : config_(config),
        dataset_(dataset),
        hidden_(hidden),
        draft_(draft),
        optimizer_(draft.named_parameters()) {}

  HeadLoss step(const SampleBatch& batch, double rate) {
    const HeadLoss loss = run(batch, /*train=*/true);
    optimizer_.step(rate, config_.weight_decay, config_.clip_norm);
    return loss;
  }

  HeadLoss measure(const SampleBatch& batch) { return run(batch, /*train=*/false); }

 private:
  /// States of all answer tokens of the batch: the draft's, with autograd, and the backbone's.
  struct States {
    at::Tensor draft, backbone;  // [positions, H]
  };

  States states_of(const SampleBatch& batch) {
    const BatchTexts texts = texts_of(dataset_, batch.samples);
    std::vector<at::Tensor> backbone;
    for (const int64_t sample : batch.samples) backbone.push_back(hidden_(sample));
    const at::Tensor hidden = draft_.forward(texts.tokens, texts.lengths);
    const at::Tensor index = at::tensor(texts.answer_rows, at::kLong).to(hidden.device());
    return {hidden.index_select(0, index), at::cat(backbone)};
  }

  HeadLoss run(const SampleBatch& batch, bool train) {
    const c10::AutoGradMode grad(train);
    const States states = states_of(batch);
    const c10::NoGradGuard no_grad;
    const at::Tensor& output = draft_.lm_head();
    const SoftLabels soft =
        make_soft_labels(states.backbone, output, config_.soft_top, config_.chunk_positions);
    std::vector<int32_t> first;  // choices of the backbone: what agreement is judged by
    for (int64_t i = 0; i < batch.positions; ++i) first.push_back(soft.rows_of(i)[0]);
    const Labels labels{first, soft.rows, soft.probs};
    const double scale = train ? 1.0 / static_cast<double>(batch.positions) : 0;
    const at::Tensor gradient = at::empty_like(states.draft.detach());
    const HeadLoss loss = head_loss(states.draft.detach(), {output, {}}, labels, scale,
                                    config_.chunk_positions, gradient);
    if (train) {
      const c10::AutoGradMode with_grad(true);
      states.draft.backward(gradient);
    }
    return loss;
  }

  const DraftTrainConfig& config_;
  const DatasetReader& dataset_;
  const HiddenSource& hidden_;
  TrainableLlama& draft_;
  AdamW optimizer_;
};

std::string note_of(const HeadLoss& loss) {
  const HeadQuality quality = loss.quality();
  return fmt::format("loss {:.3f}  agrees {:.3f}", quality.loss, quality.top_1);
}

}  // namespace

std::vector<int64_t> draft_layers(int64_t count, int64_t num_layers) {
  if (count >= num_layers)
    throw UserError(
        fmt::format("draft.layers is {}, the backbone has {}, expected fewer; lower draft.layers",
                    count, num_layers));
  std::vector<int64_t> layers(static_cast<size_t>(count));
  const int64_t first = (count + 1) / 2;
  for (int64_t i = 0; i < count; ++i)
    layers[static_cast<size_t>(i)] = i < first ? i : num_layers - count + i;
  return layers;
}

DraftTrainResult train_draft(const DraftTrainConfig& config, const DatasetReader& dataset,
                             const HiddenSource& hidden, uint64_t seed, TrainableLlama& draft) {
  const auto began = std::chrono::steady_clock::now();
  const Random random(seed);
  SampleSplit split = split_dataset(random, dataset, config.validation_fraction);
  if (split.train.empty())
    throw UserError(
        "make-draft: the dataset has no sample to train on, expected at least one; distil more, or "
        "lower draft.validation_fraction");
  if (std::ssize(split.validation) > config.validation_samples)
    split.validation.resize(static_cast<size_t>(config.validation_samples));

  std::vector<SampleBatch> batches;
  int64_t total = 0;
  for (int64_t epoch = 0; epoch < config.epochs; ++epoch)
    for (SampleBatch& batch : cut_batches(
             dataset, samples_of_epoch(random, dataset, split.train, epoch), config.batch_tokens)) {
      total += batch.positions;
      batches.push_back(std::move(batch));
    }

  DraftRun run(config, dataset, hidden, draft);
  DraftTrainResult result;
  Progress progress("make-draft", "positions", total);
  int64_t done = 0;
  for (; result.steps < std::ssize(batches) && !interrupted(); ++result.steps) {
    const SampleBatch& batch = batches[static_cast<size_t>(result.steps)];
    const double rate = learning_rate({config.learning_rate, config.warmup_steps}, result.steps,
                                      std::ssize(batches));
    const HeadLoss loss = run.step(batch, rate);
    progress.update(done += batch.positions, note_of(loss));
  }
  result.complete = result.steps == std::ssize(batches);

  HeadLoss judged;
  for (const int64_t sample : split.validation)
    judged.add(run.measure({{sample}, std::ssize(dataset.answer(sample))}));
  progress.finish(note_of(judged));
  result.loss = judged.quality().loss;
  result.agreement = judged.quality().top_1;
  result.num_validation = judged.num_scored;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

}  // namespace medusa
