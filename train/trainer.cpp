#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>

#include "base/elapsed.h"
#include "base/interrupt.h"
#include "base/memory_use.h"
#include "base/progress.h"
#include "data/dataset/dataset_mix.h"
#include "train/finite_check.h"
#include "train/first_heads.h"
#include "train/head_trainer.h"
#include "train/loss/expected_tokens.h"
#include "train/lr_schedule.h"
#include "train/processes/own_share.h"
#include "train/processes/peer_sums.h"
#include "train/record/checkpoint_store.h"
#include "train/record/metrics.h"
#include "train/samples/position_pool.h"
#include "train/samples/read_ahead.h"
#include "train/train_plan.h"

namespace medusa {
namespace {

using Clock = std::chrono::steady_clock;

/// Says something only if it is not the default: runs from before there was such a key go on.
bool says_nothing(const FieldHelp& line, const TrainConfig& config, const HeadsConfig& heads) {
  return line.key == "train.keep_checkpoints" || line.key == "train.peer_timeout_s" ||
         (line.key == "train.keep_best" && !config.keep_best) ||
         (line.key == "train.heads.output_rank" && !is_low_rank(heads.output));
}

/// Everything that decides the trained heads.
RunIdentity identity_of(TrainConfig config, HeadsConfig heads, const TrainInputs& inputs) {
  config.report_every = TrainConfig().report_every;  // these two change nothing
  config.checkpoint_every = TrainConfig().checkpoint_every;
  config.keep_checkpoints = TrainConfig().keep_checkpoints;
  RunIdentity identity{"seed=" + std::to_string(config.seed)};
  for (const std::string& dataset : dataset_identity(inputs.dataset)) identity.push_back(dataset);
  identity.push_back("the backbone=" + inputs.backbone.fingerprint);
  FieldLister lister("train");
  config.fields(lister);
  lister.section("heads", heads, "");
  for (const FieldHelp& line : lister.lines())
    if (!says_nothing(line, config, heads)) identity.push_back(line.key + "=" + line.value);
  if (inputs.peers != nullptr) identity.push_back(processes_entry(inputs.peers->count()));
  return identity;
}

std::string note_of(double loss, const std::vector<HeadLoss>& heads) {
  std::string note = fmt::format("loss {:.3f}  top-1", loss);
  for (const HeadLoss& head : heads) note += fmt::format(" {:.3f}", head.quality().top_1);
  return note;
}

std::string memory_note() { return "  " + memory_text(memory_in_use()); }

/// The loop and what it reports.
class Run {
 public:
  Run(const TrainConfig& config, const HeadsConfig& heads, const TrainInputs& inputs)
      : config_(config),
        inputs_(inputs),
        peers_(inputs.peers),
        plan_(plan_training(config, inputs.dataset)),
        hidden_(open_hidden(config, inputs)),
        heads_(untrained_heads(config, heads, inputs.dataset, inputs.backbone)),
        label_rows_(rows_of_tokens(heads_)),
        recipe_(batch_recipe(config, heads_, inputs.backbone, label_rows_)),
        trainer_(config, heads_, inputs.backbone, inputs.peers),
        store_(inputs.work_folder, identity_of(config, heads, inputs), named_parameters(heads_),
               trainer_.optimizer(), config.keep_checkpoints, inputs.peers),
        start_(store_.load(plan_.num_steps())) {
    if (is_first(peers_))
      log_.emplace(inputs.work_folder / "metrics.jsonl", start_, inputs.reported);
  }

  TrainResult train() {
    Progress progress("train", "positions", plan_.positions_before.back(), !is_first(peers_));
    progress.start_from(positions_before(start_));
    progress.update(positions_before(start_));
    int64_t step = start_;
    read_pools_ahead();
    stops_ = is_true_in_any(peers_, interrupted());
    if (lacks_validation()) validate(step);
    while (step < plan_.num_steps() && !stops()) {
      take_step(step++);
      progress.update(positions_before(step), note_of(result_.loss, last_.heads) + memory_note());
      const bool last = step == plan_.num_steps();
      if (step % config_.report_every == 0 || last) report(step);
      if (ends_epoch(step) && !stops()) validate(step);
      if (step % config_.checkpoint_every == 0 || last || stops()) store_.save();
    }
    progress.finish();
    result_.steps = step;
    result_.positions = positions_before(step) - positions_before(start_);
    result_.seconds = seconds_since(began_);
    if (step == plan_.num_steps()) finish(step);
    if (peers_ != nullptr) peers_->wait_for_all();  // so that all end well or none
    return result_;
  }

 private:
  /// From the first pool that this run trains on.
  void read_pools_ahead() {
    pool_hidden_ = hidden_;
    if (config_.hidden == HiddenFrom::Live || start_ == plan_.num_steps()) return;
    const auto first = plan_.batches[static_cast<size_t>(plan_.first_batch(start_))].pool;
    std::vector<int64_t> order;
    for (auto pool = static_cast<size_t>(first); pool < plan_.pools.size(); ++pool)
      for (const int64_t sample :
           own_share(inputs_.dataset, plan_.pools[pool], peer_rank(peers_), peer_count(peers_))
               .samples)
        if (inputs_.dataset.has_hidden(sample)) order.push_back(sample);
    pool_hidden_ =
        read_ahead(inputs_.dataset, std::move(order), hidden_, config_.shuffle_positions);
  }

  /// The last one ends the run, and is validated then.
  bool ends_epoch(int64_t step) const {
    return step < plan_.num_steps() && step % plan_.steps_per_epoch == 0;
  }

  /// Whether the run before this one was interrupted at the end of an epoch.
  bool lacks_validation() {
    const bool lacks = start_ > 0 && ends_epoch(start_) && log_ && !log_->has("validation", start_);
    return !stops() && is_true_in_any(peers_, lacks);
  }

  /// Ctrl-C, of which several processes learn together, after the same step.
  bool stops() const { return peers_ == nullptr ? interrupted() : stops_; }

  int64_t positions_before(int64_t step) const {
    const int64_t batch =
        std::min(plan_.first_batch(step), static_cast<int64_t>(plan_.batches.size()));
    return plan_.positions_before[static_cast<size_t>(batch)];
  }
  Batch batch_of(const PlannedBatch& planned) {
    if (planned.pool != loaded_pool_) {
      pool_.reset();  // before the next one takes as much
      share_ = own_share(inputs_.dataset, plan_.pools[static_cast<size_t>(planned.pool)],
                         peer_rank(peers_), peer_count(peers_));
      pool_ =
          std::make_unique<PositionPool>(inputs_.dataset, share_.samples, pool_hidden_, recipe_);
      order_ = shuffled_positions(Random(config_.seed), planned.pool, std::ssize(share_.positions));
      loaded_pool_ = planned.pool;
    }
    return pool_->batch(share_.own_of(std::span(order_).subspan(
        static_cast<size_t>(planned.begin), static_cast<size_t>(planned.end - planned.begin))));
  }

  void take_step(int64_t step) {
    std::vector<Batch> batches;
    for (int64_t i = plan_.first_batch(step); i < plan_.end_batch(step); ++i)
      batches.push_back(batch_of(plan_.batches[static_cast<size_t>(i)]));
    rate_ = learning_rate({config_.learning_rate, config_.warmup_steps}, step, plan_.num_steps());
    last_ = trainer_.step(batches, rate_);
    if (peers_ != nullptr) stops_ = is_true_in_any(peers_, interrupted());
    check_step(step, batches);
    result_.loss = last_.loss;
    since_report_.resize(last_.heads.size());
    for (size_t k = 0; k < last_.heads.size(); ++k) since_report_[k].add(last_.heads[k]);
  }

  void check_step(int64_t step, const std::vector<Batch>& batches) const {
    const auto pool = static_cast<size_t>(loaded_pool_);  // the samples whose positions are mixed
    NamedTensors all;
    for (const Batch& batch : batches) all.emplace_back("the dataset's states", batch.hidden);
    for (const auto& named : named_weights(inputs_.backbone)) all.push_back(named);
    for (const auto& [name, tensor] : named_parameters(heads_)) all.emplace_back(name, tensor);
    check_finite(last_.loss, last_.gradient_norm,
                 {step, plan_.pools[pool], "train.learning_rate",
                  store_.has_one() ? store_.last().string() : ""},
                 all);
  }

  Metrics metrics_at(const char* kind, int64_t step, const std::vector<HeadLoss>& heads) const {
    Metrics metrics;
    metrics.kind = kind;
    metrics.step = step;
    metrics.epoch = static_cast<double>(config_.epochs) *
                    static_cast<double>(positions_before(step)) /
                    static_cast<double>(plan_.positions_before.back());
    metrics.loss = weighted_loss(config_, heads);
    metrics.heads = qualities(heads);
    metrics.positions = positions_before(step);
    metrics.elapsed_s = seconds_since(began_);
    return metrics;
  }

  void report(int64_t step) {
    Metrics metrics = metrics_at("train", step, since_report_);
    metrics.learning_rate = rate_;
    metrics.gradient_norm = last_.gradient_norm;
    metrics.memory_bytes = memory_in_use();
    metrics.positions_per_s =
        static_cast<double>(positions_before(step) - positions_before(start_)) / metrics.elapsed_s;
    if (log_) log_->add(metrics);
    since_report_.clear();
  }

  std::vector<HeadLoss> validate(int64_t step) {
    const std::vector<HeadLoss> heads = judge();
    if (heads.empty()) return heads;
    Metrics metrics = metrics_at("validation", step, heads);
    if (config_.keep_best && is_first(peers_)) {
      const double expected =
          expected_tokens_per_step(heads_, inputs_.backbone,
                                   {inputs_.dataset, plan_.validation, hidden_}, inputs_.execution);
      metrics.more = {{"expected_tokens_per_step", expected}};
      store_.offer(expected);
    }
    if (log_) log_->add(metrics);
    return heads;
  }

  std::vector<HeadLoss> judge() {
    std::vector<HeadLoss> heads;
    if (plan_.validation.empty()) return heads;
    BatchRecipe recipe = recipe_;
    recipe.soft_output = at::Tensor();  // the text judges
    Progress progress("validate", "samples", std::ssize(plan_.validation), !is_first(peers_));
    heads.resize(static_cast<size_t>(heads_.config.num_heads));
    for (int64_t i = peer_rank(peers_); i < std::ssize(plan_.validation); i += peer_count(peers_)) {
      const int64_t sample = plan_.validation[static_cast<size_t>(i)];
      const PositionPool pool(inputs_.dataset, {&sample, 1}, hidden_, recipe);
      std::vector<int64_t> positions(static_cast<size_t>(pool.size()));
      std::iota(positions.begin(), positions.end(), 0);
      trainer_.measure(pool.batch(positions), heads);
      progress.update(i + 1);
    }
    sum_losses(peers_, heads);
    progress.finish(note_of(weighted_loss(config_, heads), heads));
    return heads;
  }

  /// Takes the heads of the best validation, if they are asked for.
  /// @returns  their step.
  int64_t take_best(int64_t step, std::vector<HeadLoss>& heads) {
    if (!config_.keep_best) return step;
    const int64_t best = store_.load_best().value_or(step);
    if (best == step) return step;
    heads = judge();
    return best;
  }

  void finish(int64_t step) {
    std::vector<HeadLoss> heads = validate(step);
    step = take_best(step, heads);
    result_.steps = step;
    result_.validation = qualities(heads);
    result_.complete = true;
    if (!is_first(peers_)) return;
    HeadsManifest manifest;
    manifest.backbone = inputs_.backbone.fingerprint;
    manifest.dataset = inputs_.dataset.fingerprint();
    manifest.mixed_datasets = mixed_datasets(inputs_.dataset);
    manifest.step = step;
    manifest.num_validation = heads.empty() ? 0 : heads[0].num_scored;
    manifest.quality = result_.validation;
    manifest.settings = inputs_.settings;
    save_heads(inputs_.heads_folder, heads_, inputs_.backbone.lm_head.scalar_type(), manifest);
  }

  const TrainConfig& config_;
  const TrainInputs& inputs_;
  Peers* peers_;
  Clock::time_point began_ = Clock::now();
  TrainPlan plan_;
  HiddenSource hidden_;       // of any sample
  HiddenSource pool_hidden_;  // of the pools', in their order
  MedusaHeads heads_;
  std::vector<int32_t> label_rows_;
  BatchRecipe recipe_;
  OwnShare share_;                      // of the pool that is trained on
  std::unique_ptr<PositionPool> pool_;  // of that share
  std::vector<int64_t> order_;          // of the whole pool's positions
  int64_t loaded_pool_ = -1;
  HeadTrainer trainer_;
  CheckpointStore store_;
  int64_t start_;                  // steps that were done before
  std::optional<MetricsLog> log_;  // of the first process
  bool stops_ = false;             // of several processes: one of them was interrupted
  double rate_ = 0;
  StepReport last_;
  std::vector<HeadLoss> since_report_;
  TrainResult result_;
};

}  // namespace

TrainResult train_heads(const TrainConfig& config, const HeadsConfig& heads,
                        const TrainInputs& inputs) {
  check_inputs(config, heads, inputs);
  TrainConfig whole = config;  // the step of all processes
  whole.batch_positions *= peer_count(inputs.peers);
  return Run(whole, heads, inputs).train();
}

}  // namespace medusa
