// What a step costs by the number of its rows, on this machine: the curve that drafters weigh their
// proposals against.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "heads/tree/choice_tree.h"
#include "infer/step_cost.h"
#include "runtime/model.h"

namespace medusa {

/// Times steps of 1 to 32 rows behind 256 tokens (fewer if the model's context is shorter), by
/// turns and without drafting, as long as about 60 steps take. Medians are kept, made ascending,
/// and joined by straight lines.
/// @returns  [32] milliseconds, entry N - 1.
std::vector<double> time_rows(Llama& llama);

/// @param rows_ms  entry N - 1: a step of N rows; at least one.
StepCost relative_cost(std::span<const double> rows_ms);

/// Drafting costs what is left of the steps that were timed with a tree of num_nodes when their
/// rows are taken off; unknown if there were none.
/// @param calibration  with rows_ms.
StepCost calibrated_cost(const TreeCalibration& calibration, int32_t num_nodes);

/// The curve that the tree file holds, if it was measured on this machine with these threads
/// and this dtype; else it is timed now, and what drafting costs stays unknown.
/// @param tree_file    empty or not there: timed now.
/// @throws UserError  there is a tree file and it is damaged.
StepCost measured_step_cost(const std::filesystem::path& tree_file, const Model& model);

}  // namespace medusa
