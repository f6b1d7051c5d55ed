// What metrics.jsonl says: how loss and accuracies went while the heads were trained.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace medusa {

/// One report of training or of a validation. Steps are optimiser steps since the start.
struct CurvePoint {
  int64_t step = 0;
  double loss = 0;                 // nats; weighted over heads, mean over positions
  std::vector<double> head_top_1;  // [K] shares of positions, 0 to 1; empty: not reported
};

struct TrainingCurve {
  std::vector<CurvePoint> train;       // steps ascending
  std::vector<CurvePoint> validation;  // steps ascending
};

/// A last line that was cut off by a kill is left out, and steps that a resumed run did again are
/// there once, as they were done last.
/// @throws UserError  not readable; a line is not JSON or lacks a key (file:line).
TrainingCurve read_training_curve(const std::filesystem::path& file);

}  // namespace medusa
