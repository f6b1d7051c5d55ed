// What metrics.jsonl says: how losses and accuracies went while heads, or heads and backbone, were
// trained.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace medusa {

/// One report of training or of a validation. Steps are optimizer steps since the start.
struct CurvePoint {
  int64_t step = 0;
  double loss = 0;                           // nats, weighted sum over heads
  std::vector<double> head_top_1;            // [K] shares of positions, 0 to 1; empty: not reported
  std::optional<double> backbone_loss = {};  // nats, if backbone and heads are trained
};

/// How far a joint run had led the backbone from what it was.
struct GuardPoint {
  int64_t step = 0;
  double kl = 0;                   // nats
  double perplexity = 0;           // of the watched answers
  double original_perplexity = 0;  // by the backbone as it was
  double greedy_match = 0;         // share of greedy answers that are the same
};

struct TrainingCurve {
  std::vector<CurvePoint> train;       // steps ascending
  std::vector<CurvePoint> validation;  // steps ascending
  std::vector<GuardPoint> guard;  // steps ascending; empty unless backbone and heads are trained
};

/// A last line without its end, cut off by a kill, is left out.
/// @throws UserError  not readable; a line is not JSON or lacks a key (file:line).
TrainingCurve read_training_curve(const std::filesystem::path& file);

// The curves of a training run as pictures.

/// Loss and the accuracy of each head's first draft, side by side.
std::string head_figures(const TrainingCurve& curve);

/// What moved the backbone: its own loss, KL from what it was, perplexity, greedy answers that are
/// the same. Empty if nothing of it was reported.
std::string backbone_figures(const TrainingCurve& curve);

}  // namespace medusa
