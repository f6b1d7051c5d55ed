#include "train/joint/joint_run.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/process.h"
#include "train/finite_check.h"
#include "train/joint/joint_trainer.h"
#include "train/lr_schedule.h"
#include "train/processes/data_parallel.h"
#include "train/samples/train_inputs.h"
#include "train/train_plan.h"

namespace medusa {
namespace {

RunIdentity identity_of_joint(const SharedTrainConfig& config, const JointConfig& joint,
                              const JointInputs& inputs) {
  RunIdentity identity;
  identity.add_run(config.seed, inputs.dataset, inputs.backbone.fingerprint);
  identity.add_dtype(inputs.backbone.embedding.scalar_type());
  identity.add("the first heads", inputs.heads_fingerprint);
  identity.add_settings("train", config);
  identity.ignore_settings<TrainConfig>("train");  // the heads' stage reads the others
  identity.add_settings("train.joint", joint);
  identity.set_processes(group_size(inputs.group));
  if (inputs.backbone.embedding.is_cpu()) identity.set_threads(at::get_num_threads());
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
  if (out.correction) {
    copy(out.correction->table);
    for (at::Tensor& factor : out.correction->factors) copy(factor);
  }
  if (out.prefix)
    for (const PrefixPart& part : prefix_parts(*out.prefix)) copy(*part.tensor);
  return out;
}

class JointStage : public TrainStage {
 public:
  JointStage(const SharedTrainConfig& config, const JointConfig& joint, const JointInputs& inputs)
      : TrainStage(joint.optimizer.epochs),
        config_(config),
        joint_(joint),
        inputs_(inputs),
        plan_(plan_joint(config, joint, inputs.dataset)),
        positions_before_(positions_before_steps(plan_)),
        heads_(copy_of(inputs.heads)),
        llama_(inputs.backbone, joint, config.seed),
        trainer_(config, joint, inputs.dataset, heads_, llama_, inputs.group),
        guard_(joint.guard, inputs.dataset,
               is_first(inputs.group) ? plan_.probe : std::vector<int64_t>(), llama_,
               joint.chunk_positions) {}

  std::string name() const override { return "train jointly"; }
  std::string rate_key() const override { return "train.joint.learning_rate"; }

  int64_t num_steps() const override { return plan_.num_steps; }
  int64_t positions_before(int64_t step) const override {
    return positions_before_[static_cast<size_t>(step)];
  }
  double epochs_before(int64_t step) const override {
    const int64_t batches = std::min(step * plan_.accumulate, std::ssize(plan_.batches));
    return static_cast<double>(epochs_ * batches) / static_cast<double>(plan_.batches.size());
  }
  bool validates_start() const override { return true; }

  NamedTensors parameters() const override { return trainer_.parameters(); }
  AdamW& optimizer() override { return trainer_.optimizer(); }

  StepOutcome step(int64_t step, double learning_rate) override {
    JointStep told;
    told.index = step_ = step;
    told.heads_weight = joint_.heads_weight * ramp_factor(joint_.ramp, step + 1, plan_.num_steps);
    told.learning_rate = learning_rate;
    JointReport report = trainer_.step(plan_.batches_of(step), told);
    give_back_freed_memory();
    return {report.loss,
            report.gradient_norm,
            std::move(report.heads),
            {{"backbone_loss_nats", report.backbone_loss}},
            {{"heads_weight", told.heads_weight}}};
  }

  std::vector<int64_t> samples_of_step() const override {
    std::vector<int64_t> samples;
    for (const SampleBatch& batch : plan_.batches_of(step_))
      samples.insert(samples.end(), batch.samples.begin(), batch.samples.end());
    return samples;
  }
  NamedTensors suspects() const override {
    NamedTensors all = named_weights(inputs_.backbone);
    for (const auto& named : trainer_.parameters()) all.push_back(named);
    return all;
  }

  std::string note(const StepOutcome& outcome) const override {
    const std::string heads = TrainStage::note(outcome);
    if (outcome.means.empty()) return heads;  // of a validation, which judges the heads alone
    return fmt::format("backbone {:.4f}  ", outcome.means[0].second) + heads;
  }

  double loss_of(const std::vector<HeadLoss>& heads) const override {
    return weighted_loss(config_, heads);
  }
  double reported_loss(const StepSums& sums) const override {
    return sums.loss / static_cast<double>(sums.steps);
  }

  int64_t num_heads() const override { return heads_.config.num_heads; }
  int64_t num_validation() const override { return std::ssize(plan_.validation); }
  void measure(int64_t i, std::vector<HeadLoss>& heads) override {
    trainer_.measure(plan_.validation[static_cast<size_t>(i)], heads);
  }

  std::optional<GuardReport> guard() override {
    if (!guard_.watches()) return std::nullopt;
    drift_ = guard_.measure(llama_);
    return GuardReport{drift_->numbers(), guard_.exceeded(*drift_)};
  }
  void went_back() override {
    if (guard_.watches()) drift_ = guard_.measure(llama_);
  }

  /// Hands over what was trained. Called once, behind the last step.
  JointResult take_result(TrainResult result) {
    if (guard_.watches() && !drift_) drift_ = guard_.measure(llama_);  // there was no step
    return {std::move(result), drift_, copy_of(heads_), llama_.merged()};
  }

 private:
  static std::vector<int64_t> positions_before_steps(const JointPlan& plan) {
    std::vector<int64_t> out{0};
    for (int64_t step = 0; step < plan.num_steps; ++step) {
      out.push_back(out.back());
      for (const SampleBatch& batch : plan.batches_of(step)) out.back() += batch.positions;
    }
    return out;
  }

  const SharedTrainConfig& config_;
  const JointConfig& joint_;
  const JointInputs& inputs_;
  JointPlan plan_;
  std::vector<int64_t> positions_before_;  // [steps + 1]
  MedusaHeads heads_;
  TunedLlama llama_;
  JointTrainer trainer_;
  DriftGuard guard_;
  int64_t step_ = 0;  // the last one
  std::optional<Drift> drift_;
};

}  // namespace

JointResult train_joint(const SharedTrainConfig& config, const JointConfig& joint,
                        const JointInputs& inputs) {
  check_backbone(inputs.dataset, inputs.backbone);
  check_trunk_gradient(config, inputs.heads.config);
  JointConfig whole = joint;  // the step of all processes
  whole.accumulate *= group_size(inputs.group);
  JointStage stage(config, whole, inputs);
  return stage.take_result(
      run_stage(stage, {whole.optimizer, whole.reports, config.keep_checkpoints, false},
                {inputs.work_folder, identity_of_joint(config, whole, inputs), inputs.reported,
                 inputs.group, inputs.progress, inputs.begin_anew}));
}

}  // namespace medusa
