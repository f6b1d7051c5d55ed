#include "train/joint/joint_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/elapsed.h"
#include "base/interrupt.h"
#include "base/memory_use.h"
#include "base/progress.h"
#include "train/finite_check.h"
#include "train/joint/joint_plan.h"
#include "train/joint/joint_trainer.h"
#include "train/lr_schedule.h"
#include "train/processes/peer_sums.h"
#include "train/record/checkpoint_store.h"
#include "train/record/metrics.h"
#include "train/samples/train_inputs.h"

namespace medusa {
namespace {

using Clock = std::chrono::steady_clock;

/// Everything that decides what is trained.
RunIdentity identity_of(const TrainConfig& config, JointConfig joint, const JointInputs& inputs) {
  joint.report_every = JointConfig().report_every;
  // Says how often the guard looks, but not what a run becomes that it lets pass.
  joint.checkpoint_every = JointConfig().checkpoint_every;
  joint.heads.reset();  // their content counts, not their place
  RunIdentity identity{"seed=" + std::to_string(config.seed)};
  for (const std::string& dataset : dataset_identity(inputs.dataset)) identity.push_back(dataset);
  identity.push_back("the backbone=" + inputs.backbone.fingerprint);
  identity.push_back("the first heads=" + inputs.heads_fingerprint);
  TrainConfig shared;  // of the heads' stage, what this one reads
  shared.labels = config.labels;
  shared.objective = config.objective;
  shared.soft_top = config.soft_top;
  shared.lambda_decay = config.lambda_decay;
  shared.validation_fraction = config.validation_fraction;
  FieldLister of_heads("train"), of_joint("train.joint");
  shared.fields(of_heads);
  joint.fields(of_joint);
  for (const FieldLister* lister : {&of_heads, &of_joint})
    for (const FieldHelp& line : lister->lines()) identity.push_back(line.key + "=" + line.value);
  if (inputs.peers != nullptr) identity.push_back(processes_entry(inputs.peers->count()));
  return identity;
}

MedusaHeads copy_of(const MedusaHeads& heads) {
  MedusaHeads out = heads;
  const auto copy = [](at::Tensor& tensor) {
    if (tensor.defined()) tensor = tensor.detach().clone();
  };
  for (HeadBlock& block : out.blocks)
    for (at::Tensor* tensor : {&block.weight, &block.bias, &block.second}) copy(*tensor);
  for (auto* list : {&out.outputs, &out.downs})
    for (at::Tensor& tensor : *list) copy(tensor);
  if (out.prefix)
    for (const PrefixPart& part : prefix_parts(*out.prefix)) copy(*part.tensor);
  return out;
}

/// The loop and what it reports.
class JointRun {
 public:
  JointRun(const TrainConfig& config, const JointConfig& joint, const JointInputs& inputs)
      : config_(config),
        joint_(joint),
        inputs_(inputs),
        peers_(inputs.peers),
        plan_(plan_joint(config, joint, inputs.dataset)),
        heads_(copy_of(inputs.heads)),
        llama_(inputs.backbone, joint, config.seed),
        trainer_(config, joint, inputs.dataset, heads_, llama_, inputs.peers),
        guard_(joint.guard, inputs.dataset,
               is_first(inputs.peers) ? plan_.probe : std::vector<int64_t>(), llama_,
               joint.chunk_positions),
        store_(inputs.work_folder, identity_of(config, joint, inputs), trainer_.parameters(),
               trainer_.optimizer(), config.keep_checkpoints, inputs.peers),
        start_(store_.load(plan_.num_steps)) {
    if (is_first(peers_))
      log_.emplace(inputs.work_folder / "metrics.jsonl", start_, inputs.reported);
  }

  JointResult train() {
    if (start_ == 0) {
      store_.save();  // so that there is a good one to go back to
      validate(0);
    }
    Progress progress("train jointly", "steps", plan_.num_steps, !is_first(peers_));
    progress.start_from(start_);
    int64_t step = start_;
    ends_ = is_true_in_any(peers_, interrupted());
    while (step < plan_.num_steps && !ends_) {
      take_step(step++);
      ends_ = is_true_in_any(peers_, interrupted());  // all after the same step
      progress.update(step, note());
      const bool last = step == plan_.num_steps;
      if (step % joint_.report_every == 0 || last) report(step);
      if (step % joint_.checkpoint_every == 0 || last || ends_) step = keep_or_go_back(step);
    }
    progress.finish();
    result_.steps = step;
    result_.complete = step == plan_.num_steps || result_.stopped;
    if (result_.complete) result_.validation = qualities(validate(step));
    if (guard_.watches() && !result_.drift) result_.drift = guard_.measure(llama_);  // no step
    result_.seconds = seconds_since(began_);
    result_.heads = copy_of(heads_);
    result_.backbone = llama_.merged();
    return std::move(result_);
  }

 private:
  void take_step(int64_t step) {
    const auto batches = plan_.batches_of(step);
    JointStep told;
    told.index = step;
    told.heads_weight = joint_.heads_weight * ramp_factor(joint_.ramp, step + 1, plan_.num_steps);
    told.learning_rate =
        learning_rate({joint_.learning_rate, joint_.warmup_steps}, step, plan_.num_steps);
    last_ = trainer_.step(batches, told);
    give_back_freed_memory();
    told_ = told;
    StepPlace place{step, {}, "train.joint.learning_rate", store_.last().string()};
    for (const SampleBatch& batch : batches) {
      place.samples.insert(place.samples.end(), batch.samples.begin(), batch.samples.end());
      result_.positions += batch.positions;
    }
    NamedTensors all = named_weights(inputs_.backbone);
    for (const auto& named : trainer_.parameters()) all.push_back(named);
    check_finite(last_.loss, last_.gradient_norm, place, all);
    result_.loss = last_.loss;
    since_report_.heads.resize(last_.heads.size());
    for (size_t k = 0; k < last_.heads.size(); ++k) since_report_.heads[k].add(last_.heads[k]);
    since_report_.loss += last_.loss;
    since_report_.backbone_loss += last_.backbone_loss;
    ++steps_since_report_;
  }

  std::string note() const {
    std::string text =
        fmt::format("loss {:.3f}  backbone {:.4f}  top-1", last_.loss, last_.backbone_loss);
    for (const HeadLoss& head : last_.heads) text += fmt::format(" {:.3f}", head.quality().top_1);
    return text + fmt::format("  {:.0f} tokens/s  {}",
                              static_cast<double>(result_.positions) / seconds_since(began_),
                              memory_text(memory_in_use()));
  }

  Metrics metrics_at(const char* kind, int64_t step) const {
    Metrics metrics;
    metrics.kind = kind;
    metrics.step = step;
    const int64_t batches = std::min(step * plan_.accumulate, std::ssize(plan_.batches));
    metrics.epoch =
        static_cast<double>(joint_.epochs * batches) / static_cast<double>(plan_.batches.size());
    metrics.elapsed_s = seconds_since(began_);
    for (int64_t i = 0; i < step; ++i)
      for (const SampleBatch& batch : plan_.batches_of(i)) metrics.positions += batch.positions;
    return metrics;
  }

  void report(int64_t step) {
    const auto n = static_cast<double>(steps_since_report_);
    Metrics metrics = metrics_at("train", step);
    metrics.loss = since_report_.loss / n;
    metrics.heads = qualities(since_report_.heads);
    metrics.learning_rate = told_.learning_rate;
    metrics.gradient_norm = last_.gradient_norm;
    metrics.memory_bytes = memory_in_use();
    metrics.positions_per_s = static_cast<double>(result_.positions) / metrics.elapsed_s;
    metrics.more = {{"backbone_loss_nats", since_report_.backbone_loss / n},
                    {"heads_weight", told_.heads_weight}};
    if (log_) log_->add(metrics);
    since_report_ = {};
    steps_since_report_ = 0;
  }

  /// Asks the guard; saves what it lets pass, else takes back what the last checkpoint holds.
  /// @returns  the step of what is held then.
  int64_t keep_or_go_back(int64_t step) {
    const std::string exceeded = text_of_first(peers_, ask_guard(step));
    if (exceeded.empty()) {
      store_.save();
      return step;
    }
    result_.stopped = exceeded;
    ends_ = true;
    step = store_.load(plan_.num_steps);
    if (guard_.watches()) result_.drift = guard_.measure(llama_);
    return step;
  }

  /// @returns  what exceeds the guard's limits; empty: nothing, or this process does not watch.
  std::string ask_guard(int64_t step) {
    if (!guard_.watches()) return "";
    result_.drift = guard_.measure(llama_);
    Metrics metrics = metrics_at("guard", step);
    metrics.more = result_.drift->numbers();
    log_->add(metrics);  // who watches writes
    return guard_.exceeded(*result_.drift).value_or("");
  }

  std::vector<HeadLoss> validate(int64_t step) {
    std::vector<HeadLoss> heads;
    if (plan_.validation.empty()) return heads;
    Progress progress("validate", "samples", std::ssize(plan_.validation), !is_first(peers_));
    heads.resize(static_cast<size_t>(heads_.config.num_heads));
    for (int64_t i = peer_rank(peers_); i < std::ssize(plan_.validation); i += peer_count(peers_)) {
      trainer_.measure(plan_.validation[static_cast<size_t>(i)], heads);
      progress.update(i + 1);
    }
    sum_losses(peers_, heads);
    progress.finish();
    Metrics metrics = metrics_at("validation", step);
    metrics.loss = weighted_loss(config_, heads);
    metrics.heads = qualities(heads);
    if (log_) log_->add(metrics);
    result_.num_validation = heads[0].num_scored;
    return heads;
  }

  const TrainConfig& config_;
  const JointConfig& joint_;
  const JointInputs& inputs_;
  Peers* peers_;
  Clock::time_point began_ = Clock::now();
  JointPlan plan_;
  MedusaHeads heads_;
  TunedLlama llama_;
  JointTrainer trainer_;
  DriftGuard guard_;
  CheckpointStore store_;
  int64_t start_;                  // steps that were done before
  std::optional<MetricsLog> log_;  // of the first process
  bool ends_ = false;              // interrupted, in any process, or stopped by the guard
  JointStep told_;
  JointReport last_, since_report_;  // the latter a sum
  int64_t steps_since_report_ = 0;
  JointResult result_;
};

}  // namespace

JointResult train_joint(const TrainConfig& config, const JointConfig& joint,
                        const JointInputs& inputs) {
  check_backbone(inputs.dataset, inputs.backbone);
  JointConfig whole = joint;  // the step of all processes
  whole.accumulate *= peer_count(inputs.peers);
  return JointRun(config, whole, inputs).train();
}

}  // namespace medusa
