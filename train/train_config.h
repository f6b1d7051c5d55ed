// Settings of a training run (Medusa-1: the backbone is frozen). H, V and everything that an
// artifact already says are not settings.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "train/optimizer_config.h"

namespace medusa {

/// Where the backbone's states come from.
enum class HiddenFrom {
  Auto,     // the dataset where it holds them, else the backbone
  Offline,  // the dataset, as decoding computed them; no backbone pass
  Online,   // the backbone, run over each sample
};

template <>
struct EnumNames<HiddenFrom> {
  static constexpr std::array<std::pair<const char*, HiddenFrom>, 3> values{
      {{"auto", HiddenFrom::Auto}, {"cached", HiddenFrom::Offline}, {"live", HiddenFrom::Online}}};
};

/// What a head's loss is taken against.
enum class LabelKind {
  Soft,  // the backbone's own distribution at that place (soft_labels.h)
  Hard,  // the token of the text, as in the paper
};

template <>
struct EnumNames<LabelKind> {
  static constexpr std::array<std::pair<const char*, LabelKind>, 2> values{
      {{"soft", LabelKind::Soft}, {"hard", LabelKind::Hard}}};
};

/// Which distance between a label and a head's distribution is the loss.
enum class HeadObjective {
  CrossEntropy,  // as in the paper
  Acceptance,    // acceptance_loss.h; the same where a label is one token
};

template <>
struct EnumNames<HeadObjective> {
  static constexpr std::array<std::pair<const char*, HeadObjective>, 2> values{
      {{"cross_entropy", HeadObjective::CrossEntropy}, {"acceptance", HeadObjective::Acceptance}}};
};

/// What the heads' stage and the joint stage have in common.
struct SharedTrainConfig {
  LabelKind labels = LabelKind::Soft;
  HeadObjective objective = HeadObjective::CrossEntropy;
  int64_t soft_top = 32;          // most probable tokens that make a soft label
  double lambda_decay = 0.8;      // head k's loss weighs lambda_decay^k
  double trunk_gradient = 1;      // share of the later heads' gradient that a prefix layer gets
  int64_t chunk_positions = 512;  // positions whose logits exist at one time
  double validation_fraction = 0.05;
  int64_t validation_positions = 20000;  // at most, of one validation
  int64_t keep_checkpoints = 1;          // the last ones
  double peer_timeout_s = 300;           // for which one of several processes may be silent
  uint64_t seed = 1;  // of sample order, split and the heads' start; the run's own, so no key here

  template <typename Fields>
  void fields(Fields& f) {
    f("labels", labels, "what the loss is taken against: the backbone's distribution or the text");
    f("objective", objective,
      "the loss: cross-entropy, or how seldom sampling would accept a draft; differs with soft "
      "labels only");
    f("soft_top", soft_top, "most probable tokens that make a soft label", between<int64_t>(1, 64));
    f("lambda_decay", lambda_decay, "head k's loss weighs lambda_decay^k", between(0.01, 1.0));
    f("trunk_gradient", trunk_gradient,
      "share of the gradient of heads 1, 2, … that reaches a prefix layer; head 0's all does",
      between(0.0, 1.0));
    f("chunk_positions", chunk_positions, "positions whose logits are in memory at one time",
      at_least<int64_t>(1));
    f("validation_fraction", validation_fraction, "share of samples kept out of training",
      between(0.0, 0.5));
    f("validation_positions", validation_positions, "most positions of one validation",
      at_least<int64_t>(1));
    f("keep_checkpoints", keep_checkpoints, "checkpoints that stay, the last ones, in either stage",
      at_least<int64_t>(1))
        .cosmetic();
    f("peer_timeout_s", peer_timeout_s,
      "seconds for which one of several processes may keep the others waiting", between(1e-3, 1e6))
        .cosmetic();
  }
  void validate() const {}
};

/// The heads' stage.
struct TrainConfig : SharedTrainConfig {
  OptimizerConfig optimizer{.epochs = 2, .warmup_steps = 40};
  int64_t batch_positions = 256;
  int64_t shuffle_positions = 16384;  // mixed before they are cut into batches, about
  int64_t accumulate = 1;             // batches of one optimizer step
  ReportConfig reports;
  bool keep_best = false;  // the heads of the best validation are the result
  HiddenFrom hidden = HiddenFrom::Auto;

  template <typename Fields>
  void fields(Fields& f) {
    optimizer.fields(f);
    f("batch_positions", batch_positions, "positions of a batch; of several processes, of each",
      at_least<int64_t>(1));
    f("shuffle_positions", shuffle_positions,
      "positions of different answers that are mixed before they are cut into batches, about",
      at_least<int64_t>(1));
    f("accumulate", accumulate, "batches whose gradients make one step", at_least<int64_t>(1));
    SharedTrainConfig::fields(f);
    reports.fields(f);
    f("keep_best", keep_best,
      "count the tokens per step of each validation; the heads of the best one are the result");
    f("hidden", hidden, "where the backbone's states come from");
  }
  void validate() const {}
};

/// The stages of a training run, in order.
enum class StageKind {
  Heads,  // Medusa-1: the backbone is frozen
  Joint,  // Medusa-2: backbone and heads together
};

template <>
struct EnumNames<StageKind> {
  static constexpr std::array<std::pair<const char*, StageKind>, 2> values{
      {{"heads", StageKind::Heads}, {"joint", StageKind::Joint}}};
};

/// @throws UserError  none, one twice, or heads behind joint.
void check_stages(const std::vector<StageKind>& stages);

}  // namespace medusa
