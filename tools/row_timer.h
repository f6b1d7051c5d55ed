// What a step costs by the number of its rows, on this machine: the curve that drafters weigh their
// proposals against.
#pragma once

#include <span>
#include <vector>

#include "infer/step_cost.h"
#include "tools/session.h"

namespace medusa {

/// Times steps of 1 to 32 rows behind 256 tokens (fewer if the model's context is shorter), by
/// turns and without drafting, as long as about 60 steps take. Medians are kept, made ascending,
/// and joined by straight lines.
/// @returns  [32] milliseconds, entry N - 1.
std::vector<double> time_rows(Llama& llama);

/// @param rows_ms  entry N - 1: a step of N rows; at least one.
StepCost relative_cost(std::span<const double> rows_ms);

/// The curve that the run's tree file holds, if it was measured on this machine with these threads
/// and this dtype; else it is timed now.
/// @throws UserError  there is a tree file and it is damaged.
StepCost measured_step_cost(const RunConfig& config, const Session& session);

}  // namespace medusa
