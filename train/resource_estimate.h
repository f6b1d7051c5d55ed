// What a training run will take, before an hour is wasted: bytes, steps, and one step tried and
// thrown away.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/joint/joint_run.h"
#include "train/loss/loss.h"
#include "train/trainer.h"

namespace medusa {

/// Bytes that something takes. `what` names the sizes it was reckoned from.
struct ByteNeed {
  std::string what;
  int64_t bytes = 0;
};
int64_t total_bytes(const std::vector<ByteNeed>& needs);

/// One step from the start, timed; nothing of it is kept.
struct FirstStep {
  std::vector<int64_t> samples;  // it was made of
  int64_t positions = 0;         // trained on
  double seconds = 0;            // of the step, labels included
  double lm_head_loss = 0;       // the backbone's own loss for these answers' tokens, nats
  double uniform_loss = 0;       // ln V: that of knowing nothing
  std::vector<HeadLoss> heads;   // of untrained heads, or those that the joint stage begins with
};

struct ResourceEstimate {
  int64_t num_parameters = 0;  // that are trained
  int64_t num_steps = 0;
  int64_t num_positions = 0;  // of all steps
  std::vector<ByteNeed> memory, disk;
  FirstStep first;

  /// If every step takes what the first one took. Validations, the guard and checkpoints come on
  /// top.
  double seconds() const;
  /// What looks wrong, for people; empty: nothing does.
  std::vector<std::string> warnings() const;
};

/// @throws UserError  as check_inputs() and open_hidden() do; a first loss that is no number (says
/// which tensor).
ResourceEstimate estimate_resources(const TrainConfig& config, const HeadsConfig& heads,
                                    const TrainInputs& inputs);

/// The same for the joint stage.
/// @throws UserError  as check_backbone() does; a first loss that is no number.
ResourceEstimate estimate_resources(const TrainConfig& config, const JointConfig& joint,
                                    const JointInputs& inputs);

}  // namespace medusa
