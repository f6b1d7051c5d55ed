// A joint run on the tiny dataset.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/train/tiny_run.h"
#include "train/joint/joint_run.h"
#include "train/joint/joint_trainer.h"

namespace medusa {

/// Every target there is.
inline std::vector<std::string> all_targets() {
  return {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"};
}

struct TinyJoint : TinyRun {
  explicit TinyJoint(HeadOutput output = HeadOutput::TruncatedShared, at::Device device = at::kCPU)
      : TinyRun(/*with_hidden=*/true, at::kFloat, device) {
    heads.output = output;
    joint.lora.rank = 4;
    joint.batch_tokens = 90;
    joint.optimizer.warmup_steps = 2;
    joint.optimizer.learning_rate = 2e-3;
    joint.reports.report_every = 1;
    joint.reports.checkpoint_every = 3;
    joint.guard.samples = 4;
    joint.guard.greedy_tokens = 6;
    joint.guard.max_kl = 10;
    joint.guard.max_perplexity_ratio = 100;
  }

  MedusaHeads first_heads() const { return tiny_first_heads(heads, backbone); }

  /// Trains in folder/<name>.
  JointResult train_jointly(const std::string& name) const {
    const DatasetReader dataset = open_data();
    const MedusaHeads first = first_heads();
    return train_joint(config, joint,
                       {dataset, backbone, first, "sha256:5", folder.path() / name / "train"});
  }

  JointConfig joint;
};

/// A trainer over some samples, for single steps.
struct TinyTrainer {
  explicit TinyTrainer(const TinyJoint& run)
      : dataset(run.folder.path() / "dataset"),
        heads(run.first_heads()),
        llama(run.backbone, run.joint, 3),
        trainer(run.config, run.joint, dataset, heads, llama) {}

  SampleBatch batch_of(std::vector<int64_t> samples) const {
    SampleBatch batch{std::move(samples), 0};
    for (const int64_t sample : batch.samples)
      batch.positions += std::ssize(dataset.answer(sample));
    return batch;
  }

  /// What the first step's gradient was, by name: AdamW's first moment is a tenth of it.
  std::map<std::string, at::Tensor> gradients() {
    std::map<std::string, at::Tensor> out;
    for (const auto& [name, moment] : trainer.optimizer().moments())
      if (name.starts_with("first.")) out[name.substr(6)] = moment * 10;
    return out;
  }

  DatasetReader dataset;
  MedusaHeads heads;
  TunedLlama llama;
  JointTrainer trainer;
};

}  // namespace medusa
