// What one kind of training adds to the loop that all of them share (train_loop.h): its steps, its
// validation and what it watches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/adamw.h"
#include "train/loss/loss.h"

namespace medusa {

/// Names with units, and values.
using NamedNumbers = std::vector<std::pair<std::string, double>>;

/// What one step did.
struct StepOutcome {
  double loss = 0;              // nats, before the update
  double gradient_norm = 0;     // before clipping
  std::vector<HeadLoss> heads;  // [K]
  NamedNumbers means;           // further numbers; a report tells their means over its steps
  NamedNumbers settings;        // further numbers; a report tells the last ones
};

/// Sums over the steps since the last report.
struct StepSums {
  std::vector<HeadLoss> heads;  // [K]
  double loss = 0;
  std::vector<double> means;
  int64_t steps = 0;

  void add(const StepOutcome& outcome);

  /// All of it as numbers, which a checkpoint keeps.
  std::vector<double> numbers() const;
  /// @returns  nothing if they are not numbers(): whoever alters a checkpoint may write any.
  static std::optional<StepSums> from_numbers(const std::vector<double>& numbers);
};

/// What a guard found before a checkpoint.
struct GuardReport {
  NamedNumbers numbers;
  std::optional<std::string> exceeded;  // what is beyond its limits; nothing: the run may go on
};

/// One kind of training. All of a run is laid out beforehand, so that its state is parameters,
/// optimizer and step. Of several processes each has a stage, whose functions are called in the
/// same order everywhere, except for score() and guard(), which the first one alone is asked for.
///
/// Thread safety: none.
class TrainStage {
 public:
  /// @param epochs  passes over the training samples in a whole run.
  explicit TrainStage(int64_t epochs) : epochs_(epochs) {}
  virtual ~TrainStage() = default;

  /// The progress line's name: "train".
  virtual std::string name() const = 0;
  /// The setting that a gradient without a finite norm asks to lower: "train.learning_rate".
  virtual std::string rate_key() const = 0;

  virtual int64_t num_steps() const = 0;
  /// The positions of all processes that were trained on before a step, and behind the last one in
  /// all.
  /// @param step  from 0 to num_steps().
  virtual int64_t positions_before(int64_t step) const = 0;
  /// The passes over the training samples before a step, with a fraction.
  virtual double epochs_before(int64_t step) const;
  /// Whether a validation belongs behind so many steps; the last one has its own.
  virtual bool ends_epoch(int64_t /*step*/) const { return false; }
  /// Whether a run is saved and validated before its first step, too.
  virtual bool validates_start() const { return false; }

  virtual NamedTensors parameters() const = 0;  // all that is trained, the optimizer's
  virtual AdamW& optimizer() = 0;

  /// Called once, when what a checkpoint held has been taken over.
  /// @param step  that comes first.
  virtual void begin(int64_t /*step*/) {}

  /// Makes one step of all processes.
  virtual StepOutcome step(int64_t step, double learning_rate) = 0;
  /// The samples that the last step's batches came from.
  virtual std::vector<int64_t> samples_of_step() const = 0;
  /// The tensors among which the culprit is when a loss is no number, those that were there first
  /// in front.
  virtual NamedTensors suspects() const = 0;

  /// What a line of progress says of a step.
  virtual std::string note(const StepOutcome& outcome) const;

  /// The loss of sums over some positions, nats.
  virtual double loss_of(const std::vector<HeadLoss>& heads) const = 0;
  /// The loss of a report.
  virtual double reported_loss(const StepSums& sums) const { return loss_of(sums.heads); }

  virtual int64_t num_heads() const = 0;
  /// The samples that judge what is trained.
  virtual int64_t num_validation() const = 0;
  /// Adds the losses of one of these samples, without training on it.
  /// @param i      of the sample, from 0.
  /// @param heads  [K]
  virtual void measure(int64_t i, std::vector<HeadLoss>& heads) = 0;
  /// The tokens per step that are expected of what is trained, by which the best of it is chosen.
  virtual double score() { return 0; }

  /// Looks whether a run has led too far; nothing if it is not watched.
  virtual std::optional<GuardReport> guard() { return std::nullopt; }
  /// Called when the last checkpoint has been taken back because of what the guard found.
  virtual void went_back() {}

 protected:
  const int64_t epochs_;
};

}  // namespace medusa
