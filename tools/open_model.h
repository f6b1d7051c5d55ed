// The run's model, and what this program sets for its process: LibTorch's threads, notes and
// progress on stderr.
#pragma once

#include <cstdint>

#include "runtime/model.h"
#include "runtime/placement.h"
#include "tools/run_config.h"

namespace medusa {

/// As place(), with notes on stderr and a GPU's check remembered; LibTorch's pool gets as many
/// threads.
/// @throws as place().
Placement place_process(const BackboneSection& config, int64_t local_rank = 0);

/// As Model::load().
/// @throws UserError
Model open_model(const BackboneSection& config);

}  // namespace medusa
