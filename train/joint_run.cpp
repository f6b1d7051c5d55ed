#include "train/joint_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/elapsed.h"
#include "base/interrupt.h"
#include "base/memory_use.h"
#include "base/progress.h"
#include "train/checkpoint_store.h"
#include "train/finite_check.h"
#include "train/joint_plan.h"
#include "train/joint_trainer.h"
#include "train/lr_schedule.h"
#include "train/metrics.h"
#include "train/train_inputs.h"

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
        plan_(plan_joint(config, joint, inputs.dataset)),
        heads_(copy_of(inputs.heads)),
        llama_(inputs.backbone, joint, config.seed),
        trainer_(config, joint, inputs.dataset, heads_, llama_),
        guard_(joint.guard, inputs.dataset, plan_.probe, llama_, joint.chunk_positions),
        store_(inputs.work_folder, identity_of(config, joint, inputs), trainer_.parameters(),
               trainer_.optimizer(), config.keep_checkpoints),
        start_(store_.load()),
        log_(inputs.work_folder / "metrics.jsonl", start_, inputs.reported) {}

  JointResult train() {
    if (!store_.has_one()) store_.save();  // so that there is a good one to go back to
    if (start_ == 0) validate(0);
    Progress progress("train jointly", "steps", plan_.num_steps);
    progress.start_from(start_);
    int64_t step = start_;
    while (step < plan_.num_steps && !interrupted() && !result_.stopped) {
      take_step(step++);
      progress.update(step, note());
      const bool last = step == plan_.num_steps;
      if (step % joint_.report_every == 0 || last) report(step);
      if (step % joint_.checkpoint_every == 0 || last || interrupted())
        step = keep_or_go_back(step);
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
    log_.add(metrics);
    since_report_ = {};
    steps_since_report_ = 0;
  }

  /// Asks the guard; saves what it lets pass, else takes back what the last checkpoint holds.
  /// @returns  the step of what is held then.
  int64_t keep_or_go_back(int64_t step) {
    if (!guard_.watches()) {
      store_.save();
      return step;
    }
    const Drift drift = guard_.measure(llama_);
    Metrics metrics = metrics_at("guard", step);
    metrics.more = drift.numbers();
    log_.add(metrics);
    result_.stopped = guard_.exceeded(drift);
    if (result_.stopped) {
      const int64_t good = store_.load();
      result_.drift = guard_.measure(llama_);
      return good;
    }
    result_.drift = drift;
    store_.save();
    return step;
  }

  std::vector<HeadLoss> validate(int64_t step) {
    std::vector<HeadLoss> heads;
    if (plan_.validation.empty()) return heads;
    Progress progress("validate", "samples", std::ssize(plan_.validation));
    int64_t done = 0;
    for (const SampleBatch& sample : plan_.validation) {
      trainer_.measure(sample, heads);
      progress.update(++done);
    }
    progress.finish();
    Metrics metrics = metrics_at("validation", step);
    metrics.loss = weighted_loss(config_, heads);
    metrics.heads = qualities(heads);
    log_.add(metrics);
    result_.num_validation = heads[0].num_scored;
    return heads;
  }

  const TrainConfig& config_;
  const JointConfig& joint_;
  const JointInputs& inputs_;
  Clock::time_point began_ = Clock::now();
  JointPlan plan_;
  MedusaHeads heads_;
  TunedLlama llama_;
  JointTrainer trainer_;
  DriftGuard guard_;
  CheckpointStore store_;
  int64_t start_;  // steps that were done before
  MetricsLog log_;
  JointStep told_;
  JointReport last_, since_report_;  // the latter a sum
  int64_t steps_since_report_ = 0;
  JointResult result_;
};

}  // namespace

JointResult train_joint(const TrainConfig& config, const JointConfig& joint,
                        const JointInputs& inputs) {
  check_backbone(inputs.dataset, inputs.backbone);
  return JointRun(config, joint, inputs).train();
}

}  // namespace medusa
