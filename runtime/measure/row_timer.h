// What a step costs by the number of its rows, on this machine: the curve that drafters weigh their
// proposals against.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "heads/tree/choice_tree.h"
#include "infer/step_cost.h"
#include "runtime/model.h"

namespace medusa {

/// Times steps of kTimedRows behind 256 tokens (fewer if the model's context is shorter), by turns
/// and without drafting, as long as about 60 steps take.
/// @returns  [32] milliseconds, entry N - 1.
std::vector<double> time_rows(Llama& llama);

/// @param rows_ms  entry N - 1: a step of N rows; at least one.
StepCost relative_cost(std::span<const double> rows_ms);

/// Drafting costs what was timed of it; where it was not timed by itself, what a step with a tree
/// of num_nodes takes beyond a plain one, less what its rows add to a step of one row; unknown if
/// no such step was timed.
/// @param calibration  with rows_ms; its sizes begin with a plain step.
StepCost calibrated_cost(const TreeCalibration& calibration, int32_t num_nodes);

/// The curve that the tree holds, if it was measured on this machine with these threads and this
/// dtype.
std::optional<StepCost> calibrated_here(const ChoiceTree& tree, const Llama& llama);

/// The curve that the tree file holds, if it was measured on this machine with these threads
/// and this dtype; else it is timed now, and what drafting costs stays unknown.
/// @param tree_file    empty or not there: timed now.
/// @throws UserError  there is a tree file and it is damaged.
StepCost measured_step_cost(const std::filesystem::path& tree_file, const Model& model);

}  // namespace medusa
