#include "train/trainer.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "data/dataset/sample_order.h"
#include "heads/heads_checkpoint.h"
#include "train/finite_check.h"
#include "train/head_trainer.h"
#include "train/loss/expected_tokens.h"
#include "train/processes/data_parallel.h"
#include "train/record/checkpoint.h"
#include "train/record/heads_place.h"
#include "train/samples/hidden_source.h"
#include "train/samples/shuffle_buffer.h"
#include "train/train_plan.h"

namespace medusa {
namespace {

RunIdentity identity_of_heads(const TrainConfig& config, const HeadsConfig& heads,
                              const TrainInputs& inputs) {
  RunIdentity identity;
  identity.add_run(config.seed, inputs.dataset, inputs.backbone.fingerprint);
  identity.add_settings("train", config);
  identity.add_settings("train.heads", heads);
  identity.add_dtype(inputs.backbone.embedding.scalar_type());
  if (inputs.earlier != nullptr)
    identity.add("the heads to begin with", inputs.earlier->manifest.fingerprint);
  identity.set_processes(group_size(inputs.group));
  return identity;
}

class HeadsStage : public TrainStage {
 public:
  /// @param training  what the manifest of the result says of it.
  HeadsStage(const TrainConfig& config, const HeadsConfig& heads, const TrainInputs& inputs,
             std::string training)
      : TrainStage(config.optimizer.epochs),
        config_(config),
        inputs_(inputs),
        training_(std::move(training)),
        group_(inputs.group),
        plan_(plan_training(config, inputs.dataset)),
        hidden_(open_hidden(config, inputs)),
        heads_(first_heads(config, heads, inputs)),
        label_rows_(rows_of_tokens(heads_)),
        recipe_(batch_recipe(config, heads_, inputs.backbone, label_rows_)),
        trainer_(config, heads_, inputs.backbone, inputs.group) {}

  std::string name() const override { return "train"; }
  std::string rate_key() const override { return "train.learning_rate"; }

  int64_t num_steps() const override { return plan_.num_steps(); }
  int64_t positions_before(int64_t step) const override {
    const int64_t batch =
        std::min(plan_.first_batch(step), static_cast<int64_t>(plan_.batches.size()));
    return plan_.positions_before[static_cast<size_t>(batch)];
  }
  bool ends_epoch(int64_t step) const override { return step % plan_.steps_per_epoch == 0; }

  NamedTensors parameters() const override { return named_parameters(heads_); }
  AdamW& optimizer() override { return trainer_.optimizer(); }

  /// Reads ahead from the first pool that this run trains on.
  void begin(int64_t step) override {
    check_heads_place(inputs_.heads_folder, training_, inputs_.replaceable);
    pool_hidden_ = hidden_;
    if (config_.hidden == HiddenFrom::Online || step == plan_.num_steps()) return;
    const auto first = plan_.batches[static_cast<size_t>(plan_.first_batch(step))].pool;
    std::vector<int64_t> order;
    for (auto pool = static_cast<size_t>(first); pool < plan_.pools.size(); ++pool)
      for (const int64_t sample : sharded_samples(inputs_.dataset, plan_.pools[pool],
                                                  group_rank(group_), group_size(group_))
                                      .samples)
        if (inputs_.dataset.has_hidden(sample)) order.push_back(sample);
    pool_hidden_ =
        read_ahead(inputs_.dataset, std::move(order), hidden_, config_.shuffle_positions);
  }

  StepOutcome step(int64_t step, double learning_rate) override {
    batches_.clear();  // before the next ones take as much
    for (int64_t i = plan_.first_batch(step); i < plan_.end_batch(step); ++i)
      batches_.push_back(batch_of(plan_.batches[static_cast<size_t>(i)]));
    return trainer_.step(batches_, learning_rate);
  }

  std::vector<int64_t> samples_of_step() const override {
    return plan_.pools[static_cast<size_t>(loaded_pool_)];  // whose positions are mixed
  }
  NamedTensors suspects() const override {
    NamedTensors all;
    for (const Batch& batch : batches_) all.emplace_back("the dataset's states", batch.hidden);
    for (const auto& named : named_weights(inputs_.backbone)) all.push_back(named);
    for (const auto& named : named_parameters(heads_)) all.push_back(named);
    return all;
  }

  double loss_of(const std::vector<HeadLoss>& heads) const override {
    return weighted_loss(config_, heads);
  }

  int64_t num_heads() const override { return heads_.config.num_heads; }
  int64_t num_validation() const override { return std::ssize(plan_.validation); }
  void measure(int64_t i, std::vector<HeadLoss>& heads) override {
    BatchRecipe recipe = recipe_;
    recipe.soft_output = at::Tensor();  // the text judges
    const int64_t sample = plan_.validation[static_cast<size_t>(i)];
    const ShuffleBuffer pool(inputs_.dataset, {&sample, 1}, hidden_, recipe);
    std::vector<int64_t> positions(static_cast<size_t>(pool.size()));
    std::iota(positions.begin(), positions.end(), int64_t{0});
    trainer_.measure(pool.batch(positions), heads);
  }

  double score() override {
    return expected_tokens_per_step(
        heads_, inputs_.backbone, {inputs_.dataset, plan_.validation, hidden_}, inputs_.execution);
  }

  const MedusaHeads& heads() const { return heads_; }

 private:
  Batch batch_of(const PlannedBatch& planned) {
    if (planned.pool != loaded_pool_) {
      pool_.reset();  // before the next one takes as much
      share_ = sharded_samples(inputs_.dataset, plan_.pools[static_cast<size_t>(planned.pool)],
                               group_rank(group_), group_size(group_));
      pool_ =
          std::make_unique<ShuffleBuffer>(inputs_.dataset, share_.samples, pool_hidden_, recipe_);
      order_ = shuffled_positions(Random(config_.seed), planned.pool, std::ssize(share_.positions));
      loaded_pool_ = planned.pool;
    }
    return pool_->batch(share_.own_of(std::span(order_).subspan(
        static_cast<size_t>(planned.begin), static_cast<size_t>(planned.end - planned.begin))));
  }

  const TrainConfig& config_;
  const TrainInputs& inputs_;
  std::string training_;
  ProcessGroup* group_;
  TrainPlan plan_;
  HiddenSource hidden_;       // of any sample
  HiddenSource pool_hidden_;  // of the pools', in their order
  MedusaHeads heads_;
  std::vector<int32_t> label_rows_;
  BatchRecipe recipe_;
  ShardedSamples share_;                 // of the pool that is trained on
  std::unique_ptr<ShuffleBuffer> pool_;  // of that share
  std::vector<int64_t> order_;           // of the whole pool's positions
  int64_t loaded_pool_ = -1;
  std::vector<Batch> batches_;  // of the last step
  HeadTrainer trainer_;
};

HeadsManifest manifest_of_heads(const TrainConfig& config, const TrainInputs& inputs,
                                const TrainResult& result) {
  HeadsManifest manifest;
  manifest.seed = config.seed;
  manifest.validation_fraction = config.validation_fraction;
  manifest.backbone = inputs.backbone.fingerprint;
  manifest.dataset = inputs.dataset.fingerprint();
  manifest.mixed_datasets = mixed_datasets(inputs.dataset);
  if (inputs.earlier != nullptr) manifest.learned_before = learned_texts(inputs.earlier->manifest);
  manifest.step = result.steps;
  manifest.num_validation = result.num_validation;
  manifest.quality = result.validation;
  manifest.settings = inputs.settings;
  return manifest;
}

}  // namespace

TrainResult train_heads(const TrainConfig& config, const HeadsConfig& heads,
                        const TrainInputs& inputs) {
  check_inputs(config, heads, inputs);
  TrainConfig whole = config;  // the step of all processes
  whole.batch_positions *= group_size(inputs.group);
  check_keep_best(config, inputs.dataset);
  const RunIdentity identity = identity_of_heads(whole, heads, inputs);
  const std::string training = identity.fingerprint();
  const auto check_place = [&] {
    check_heads_place(inputs.heads_folder, training, inputs.replaceable);
  };
  // Before anything is made; what a checkpoint is refused for is said before, and it is there.
  if (!has_checkpoint(inputs.work_folder / "checkpoint")) check_place();
  HeadsStage stage(whole, heads, inputs, training);
  const TrainResult result =
      run_stage(stage, {whole.optimizer, whole.reports, whole.keep_checkpoints, whole.keep_best},
                {inputs.work_folder, identity, inputs.reported, inputs.group, inputs.progress,
                 inputs.begin_anew});
  if (result.complete && is_first(inputs.group)) {
    HeadsManifest manifest = manifest_of_heads(config, inputs, result);
    manifest.training = training;
    check_place();  // another run may have put its own there since
    save_heads(inputs.heads_folder, stage.heads(), inputs.backbone.lm_head.scalar_type(), manifest);
  }
  if (inputs.group != nullptr) inputs.group->barrier();  // so that all end well or none
  return result;
}

}  // namespace medusa
