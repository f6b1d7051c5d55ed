// What must be equal for two measurements of a bench to stand in one table.
#pragma once

#include <cstdint>
#include <vector>

#include "data/prompts.h"
#include "runtime/bench/conditions.h"
#include "runtime/model.h"
#include "tools/bench/bench.h"
#include "tools/run/run_config.h"

namespace medusa {

/// What every result has.
Conditions bench_conditions(const RunConfig& config, const Model& model,
                            const std::vector<Prompt>& questions, int32_t slots);

/// What results may lack, because another method has it or they are from before it was kept: which
/// heads, tree, texts and draft models the methods of a plan have, and the settings that they read.
/// What cannot be read is left out: its method says so.
Conditions method_conditions(const RunConfig& config, const BenchPlan& plan);

}  // namespace medusa
