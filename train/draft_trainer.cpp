#include "train/draft_trainer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "data/dataset/sample_order.h"
#include "train/adamw.h"
#include "train/loss/loss.h"
#include "train/loss/soft_labels.h"
#include "train/samples/sample_batches.h"

namespace medusa {
namespace {

/// A draft model counts as one head, whose tokens are the backbone's first choices.
class DraftStage : public TrainStage {
 public:
  DraftStage(const DraftTrainConfig& config, const DraftInputs& inputs, TrainableLlama& draft)
      : TrainStage(config.optimizer.epochs),
        config_(config),
        inputs_(inputs),
        draft_(draft),
        optimizer_(draft.named_parameters()) {
    const Random random(inputs.seed);
    SampleSplit split = split_dataset(random, inputs.dataset, config.validation_fraction);
    if (split.train.empty())
      throw UserError(
          "make-draft: the dataset has no sample to train on, expected at least one; distil more, "
          "or lower draft.validation_fraction");
    validation_ = std::move(split.validation);
    if (std::ssize(validation_) > config.validation_samples)
      validation_.resize(static_cast<size_t>(config.validation_samples));
    batches_ = batches_of_run(random, inputs.dataset, split.train, epochs_, config.batch_tokens);
    if (batches_.empty())
      throw UserError(fmt::format(
          "train.data_weights: found weights by which none of {} samples has its turn in {} "
          "epochs, expected a turn for some; raise the weights, or draft.epochs",
          split.train.size(), epochs_));
    for (const SampleBatch& batch : batches_)
      positions_before_.push_back(positions_before_.back() + batch.positions);
  }

  std::string name() const override { return "make-draft"; }
  std::string rate_key() const override { return "draft.learning_rate"; }

  int64_t num_steps() const override { return std::ssize(batches_); }
  int64_t positions_before(int64_t step) const override {
    return positions_before_[static_cast<size_t>(step)];
  }
  NamedTensors parameters() const override { return draft_.named_parameters(); }
  AdamW& optimizer() override { return optimizer_; }

  StepOutcome step(int64_t step, double learning_rate) override {
    step_ = step;
    const HeadLoss loss = run(batches_[static_cast<size_t>(step)], /*train=*/true);
    const double norm =
        optimizer_.step(learning_rate, config_.optimizer.weight_decay, config_.optimizer.clip_norm);
    return {loss.quality().loss, norm, {loss}, {}, {}};
  }

  std::vector<int64_t> samples_of_step() const override {
    return batches_[static_cast<size_t>(step_)].samples;
  }
  NamedTensors suspects() const override {
    NamedTensors all{{"lm_head", draft_.lm_head()}};
    for (const auto& named : draft_.named_parameters()) all.push_back(named);
    return all;
  }

  std::string note(const StepOutcome& outcome) const override {
    return fmt::format("loss {:.3f}  agrees {:.3f}", outcome.loss,
                       outcome.heads[0].quality().top_1);
  }

  double loss_of(const std::vector<HeadLoss>& heads) const override {
    return heads[0].quality().loss;
  }

  int64_t num_heads() const override { return 1; }
  int64_t num_validation() const override { return std::ssize(validation_); }
  void measure(int64_t i, std::vector<HeadLoss>& heads) override {
    const int64_t sample = validation_[static_cast<size_t>(i)];
    heads[0].add(run({{sample}, std::ssize(inputs_.dataset.answer(sample))}, /*train=*/false));
  }

 private:
  /// States of all answer tokens of the batch: the draft's, with autograd, and the backbone's.
  struct States {
    at::Tensor draft, backbone;  // [positions, H]
  };

  States states_of(const SampleBatch& batch) {
    const BatchTexts texts = texts_of(inputs_.dataset, batch.samples);
    std::vector<at::Tensor> backbone;
    for (const int64_t sample : batch.samples) backbone.push_back(inputs_.hidden(sample));
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
  const DraftInputs& inputs_;
  TrainableLlama& draft_;
  AdamW optimizer_;
  std::vector<SampleBatch> batches_;             // one for each step
  std::vector<int64_t> positions_before_ = {0};  // [steps + 1]
  std::vector<int64_t> validation_;              // samples
  int64_t step_ = 0;                             // the last one
};

}  // namespace

std::vector<int64_t> draft_layers(int64_t count, int64_t num_layers) {
  if (num_layers < 2)
    throw UserError(
        "make-draft: the backbone has one layer, expected at least 2, of which some are left out; "
        "use another drafter");
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

DraftTrainResult train_draft(const DraftTrainConfig& config, const DraftInputs& inputs,
                             TrainableLlama& draft) {
  RunIdentity identity;
  identity.add_run(inputs.seed, inputs.dataset, inputs.backbone);
  identity.add_settings("draft", config);
  identity.add_dtype(draft.lm_head().scalar_type());
  if (draft.lm_head().is_cpu()) identity.set_threads(at::get_num_threads());
  DraftStage stage(config, inputs, draft);
  DraftTrainResult result{run_stage(stage, {config.optimizer, config.reports},
                                    {inputs.work_folder, identity, inputs.reported, nullptr,
                                     inputs.progress, inputs.begin_anew})};
  if (result.validation.empty()) return result;
  result.validation_loss = result.validation[0].loss;
  result.agreement = result.validation[0].top_1;
  return result;
}

}  // namespace medusa
