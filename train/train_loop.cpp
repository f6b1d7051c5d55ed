#include "train/train_loop.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "base/elapsed.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/process.h"
#include "base/progress.h"
#include "train/finite_check.h"
#include "train/lr_schedule.h"
#include "train/processes/data_parallel.h"
#include "train/record/checkpoint_store.h"

namespace medusa {
namespace {

/// The sums that a checkpoint kept of steps that no report has told of yet.
StepSums kept_sums(const CheckpointStore& store) {
  auto sums = StepSums::from_numbers(store.unreported());
  if (!sums)
    throw UserError(fmt::format(
        "{}: unreported holds other numbers than a run writes there, expected its steps, losses "
        "and counts; the checkpoint is damaged: put a copy of {} in its place, or remove {} to "
        "train anew",
        (store.last() / "checkpoint.yaml").string(), store.last().string(),
        store.last().parent_path().string()));
  return std::move(*sums);
}

class TrainLoop {
 public:
  TrainLoop(TrainStage& stage, const LoopConfig& config, const LoopPlace& place)
      : stage_(stage),
        config_(config),
        group_(place.group),
        progress_(is_first(group_) ? place.progress : ProgressFunction()),
        num_steps_(stage.num_steps()),
        store_(place.work_folder, place.identity, stage.parameters(), stage.optimizer(),
               config.keep_checkpoints, place.group),
        start_(open_progress(place)),
        sums_(kept_sums(store_)) {
    if (config_.keep_best && is_first(group_)) store_.check_best();
    if (is_first(group_)) log_.emplace(place.work_folder / "metrics.jsonl", start_, place.reported);
  }

  TrainResult run() {
    if (start_ == 0 && stage_.validates_start()) {
      store_.save();  // so that there is a good one to go back to
      validate(0);
    }
    Progress progress(progress_, stage_.name(), "positions", stage_.positions_before(num_steps_));
    progress.start_from(stage_.positions_before(start_));
    progress.update(stage_.positions_before(start_));
    stage_.begin(start_);
    listen();
    int64_t step = start_;
    if (lacks_validation()) validate(step);
    while (step < num_steps_ && !ends_) {
      take_step(step++);
      progress.update(stage_.positions_before(step),
                      stage_.note(last_) + "  " + memory_text(memory_in_use()));
      const bool last = step == num_steps_;
      if (step % config_.reports.report_every == 0 || last) report(step);
      if (!last && !ends_ && stage_.ends_epoch(step)) validate(step);
      if (step % config_.reports.checkpoint_every == 0 || last || ends_)
        step = keep_or_go_back(step);
    }
    progress.finish();
    result_.steps = step;
    result_.seconds = seconds_since(began_);
    result_.complete = step == num_steps_ || result_.stopped;
    if (result_.complete) finish(step);
    return std::move(result_);
  }

 private:
  /// @returns  the steps that were done before.
  int64_t open_progress(const LoopPlace& place) {
    if (place.begin_anew && is_first(group_)) place.begin_anew();
    return store_.load(num_steps_);
  }

  /// Hears of Ctrl-C, of which several processes learn together, after the same step.
  void listen() {
    if (ends_) return;
    ends_ = is_true_in_any(group_, interrupted());
    if (ends_ && !interrupted()) interrupted_elsewhere();
  }

  /// Whether the run before this one was interrupted at the end of an epoch.
  bool lacks_validation() {
    const bool lacks = start_ > 0 && start_ < num_steps_ && stage_.ends_epoch(start_) && log_ &&
                       !log_->has("validation", start_);
    return !ends_ && is_true_in_any(group_, lacks);
  }

  void take_step(int64_t step) {
    rate_ = learning_rate(config_.optimizer, step, num_steps_);
    last_ = stage_.step(step, rate_);
    if (!std::isfinite(last_.loss) || !std::isfinite(last_.gradient_norm))
      check_finite(last_.loss, last_.gradient_norm,
                   {step, stage_.samples_of_step(), stage_.rate_key(),
                    store_.has_one() ? store_.last().string() : ""},
                   stage_.suspects());
    sums_.add(last_);
    result_.loss = last_.loss;
    result_.positions += stage_.positions_before(step + 1) - stage_.positions_before(step);
    listen();
  }

  Metrics metrics_at(const char* kind, int64_t step) const {
    Metrics metrics;
    metrics.kind = kind;
    metrics.step = step;
    metrics.epoch = stage_.epochs_before(step);
    metrics.positions = stage_.positions_before(step);
    metrics.elapsed_s = seconds_since(began_);
    return metrics;
  }

  void report(int64_t step) {
    Metrics metrics = metrics_at("train", step);
    metrics.loss = stage_.reported_loss(sums_);
    metrics.heads = qualities(sums_.heads);
    metrics.learning_rate = rate_;
    metrics.gradient_norm = last_.gradient_norm;
    metrics.memory_bytes = memory_in_use();
    metrics.positions_per_s = static_cast<double>(result_.positions) / metrics.elapsed_s;
    for (size_t i = 0; i < last_.means.size(); ++i)
      metrics.more.emplace_back(last_.means[i].first,
                                sums_.means[i] / static_cast<double>(sums_.steps));
    metrics.more.insert(metrics.more.end(), last_.settings.begin(), last_.settings.end());
    if (log_) log_->add(metrics);
    sums_ = {};
    listen();
  }

  /// Judges what is trained on the validation samples.
  /// @returns  [K], of all processes; empty without such samples.
  std::vector<HeadLoss> judge() {
    const int64_t count = stage_.num_validation();
    if (count == 0) return {};
    std::vector<HeadLoss> heads(static_cast<size_t>(stage_.num_heads()));
    Progress progress(progress_, "validate", "samples", count);
    for (int64_t i = group_rank(group_); i < count; i += group_size(group_)) {
      stage_.measure(i, heads);
      progress.update(i + 1);
    }
    sum_losses(group_, heads);
    progress.finish(stage_.note({stage_.loss_of(heads), 0, heads, {}, {}}));
    return heads;
  }

  std::vector<HeadLoss> validate(int64_t step) {
    const std::vector<HeadLoss> heads = judge();
    if (heads.empty()) return heads;
    Metrics metrics = metrics_at("validation", step);
    metrics.loss = stage_.loss_of(heads);
    metrics.heads = qualities(heads);
    if (config_.keep_best && is_first(group_)) {
      const double expected = stage_.score();
      metrics.more = {{"expected_tokens_per_step", expected}};
      store_.offer(expected);
    }
    if (log_) log_->add(metrics);
    listen();
    return heads;
  }

  /// Asks the guard; saves what it lets pass, else takes back what the last checkpoint holds.
  /// @returns  the step of what is held then.
  int64_t keep_or_go_back(int64_t step) {
    const std::string exceeded = text_of_first(group_, ask_guard(step));
    if (exceeded.empty()) {
      if (log_) log_->flush();
      store_.save(sums_.numbers());
      return step;
    }
    result_.stopped = exceeded;
    ends_ = true;
    step = store_.load(num_steps_);
    stage_.went_back();
    return step;
  }

  /// @returns  what exceeds the guard's limits; empty: nothing, or this process does not watch.
  std::string ask_guard(int64_t step) {
    if (!is_first(group_)) return "";
    const auto found = stage_.guard();
    if (!found) return "";
    Metrics metrics = metrics_at("guard", step);
    metrics.more = found->numbers;
    log_->add(metrics);
    return found->exceeded.value_or("");
  }

  void finish(int64_t step) {
    std::vector<HeadLoss> heads = validate(step);
    if (log_) log_->flush();
    if (config_.keep_best) {
      result_.steps = store_.load_best().value_or(step);
      if (result_.steps != step) heads = judge();
    }
    result_.validation = qualities(heads);
    result_.num_validation = heads.empty() ? 0 : heads[0].num_scored;
  }

  TrainStage& stage_;
  const LoopConfig& config_;
  ProcessGroup* group_;
  ProgressFunction progress_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  int64_t num_steps_;
  CheckpointStore store_;
  int64_t start_;                  // steps that were done before
  StepSums sums_;                  // of what no report has told yet
  std::optional<MetricsLog> log_;  // of the first process
  bool ends_ = false;              // interrupted, in any process, or stopped by the guard
  double rate_ = 0;
  StepOutcome last_;
  TrainResult result_;
};

}  // namespace

TrainResult run_stage(TrainStage& stage, const LoopConfig& config, const LoopPlace& place) {
  return TrainLoop(stage, config, place).run();
}

}  // namespace medusa
