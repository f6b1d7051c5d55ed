// How long the steps of a GPU's own loop take with trees of different sizes: graphs, and the host a
// step behind.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "infer/cuda/device_decoder.h"
#include "infer/factory.h"
#include "runtime/measure/step_timer.h"

namespace medusa {

/// Times steps as time_steps() does, for targets that decode so. One size after the other, so that
/// only the buffers of one are in memory; each sample is the mean of a run of steps.
/// @param heads     that draft.
/// @param settings  of rule and loop; the drafter is Medusa, or none for a tree of one node.
/// @param context   tokens before the first step; at least 2, and kTimedTokens fewer than the
///                  target holds.
/// @returns         nothing where such steps run in the host's loop.
std::optional<StepTimes> time_device_steps(BackboneTarget& target, const MedusaHeads& heads,
                                           InferConfig settings, std::span<const RankPath> paths,
                                           std::span<const TokenId> context,
                                           const std::vector<int32_t>& sizes, int64_t repeats,
                                           const DeviceLoopKernels& kernels,
                                           ProgressFunction tell = {});

inline constexpr int32_t kTimedTokens = 48;  // of a sample

}  // namespace medusa
