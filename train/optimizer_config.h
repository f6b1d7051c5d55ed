// Settings that every kind of training has, as keys of its own section: how the parameters are
// updated, and how often a run tells and keeps what it has.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "base/fields.h"

namespace medusa {

/// How the learning rate falls after its warm-up.
enum class RateSchedule {
  Cosine,    // half a cosine, to 0 after the last step
  Linear,    // a straight line, to 0 after the last step
  Constant,  // it stays at its peak
};

template <>
struct EnumNames<RateSchedule> {
  static constexpr std::array<std::pair<const char*, RateSchedule>, 3> values{
      {{"cosine", RateSchedule::Cosine},
       {"linear", RateSchedule::Linear},
       {"constant", RateSchedule::Constant}}};
};

struct OptimizerConfig {
  int64_t epochs = 1;
  double learning_rate = 1e-3;  // peak
  RateSchedule schedule = RateSchedule::Cosine;
  int64_t warmup_steps = 10;
  double weight_decay = 0;
  double clip_norm = 1;  // of the gradient over all parameters

  template <typename Fields>
  void fields(Fields& f) {
    // All steps of a run are laid out before the first one: some hundred bytes for each.
    f("epochs", epochs, "passes over the training samples", between<int64_t>(1, 10'000));
    f("learning_rate", learning_rate, "AdamW peak step size", greater_than(0.0));
    f("schedule", schedule, "how the step size falls after its warm-up; constant: it does not");
    f("warmup_steps", warmup_steps, "optimizer steps of linear warm-up", at_least<int64_t>(0));
    f("weight_decay", weight_decay, "AdamW weight decay", at_least(0.0));
    f("clip_norm", clip_norm, "largest norm of the whole gradient", greater_than(0.0));
  }
  void validate() const {}
};

struct ReportConfig {
  int64_t report_every = 20;       // steps
  int64_t checkpoint_every = 200;  // steps

  template <typename Fields>
  void fields(Fields& f) {
    f("report_every", report_every, "optimizer steps between two reports", at_least<int64_t>(1))
        .cosmetic();
    // Of the joint stage also how often its guard looks, but not what a run becomes that it lets
    // pass.
    f("checkpoint_every", checkpoint_every, "optimizer steps between two checkpoints",
      at_least<int64_t>(1))
        .cosmetic();
  }
  void validate() const {}
};

}  // namespace medusa
