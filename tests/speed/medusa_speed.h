// How long whole Medusa steps take on a GPU: heads, tree, verification and all that a captured step
// does, on a model and heads of random weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "heads/heads_config.h"
#include "infer/infer_config.h"
#include "tests/speed/step_speed.h"

namespace medusa {

/// Steps of one kind of heads and one rule.
struct MedusaSpeed {
  HeadInput input = HeadInput::Root;
  RuleKind rule = RuleKind::Greedy;
  int64_t context = 0;             // tokens before the first step
  std::vector<int32_t> num_nodes;  // of the trees; 1: a plain step
  std::vector<double> step_ms;     // of each
};

/// The plain step, and trees of the shape's numbers of rows behind each of its contexts, with four
/// heads of the kinds hidden and root, greedy; and with root heads under the typical rule at
/// temperature 0.7. Which tokens are drafted does not change what a step costs.
/// @param samples  of each; at least one.
/// @throws UserError  these steps do not run in the device's own loop here.
std::vector<MedusaSpeed> measure_medusa_speed(const SpeedShape& shape, at::ScalarType dtype,
                                              at::Device device, int64_t samples, uint64_t seed);

/// Each step's time, and what it is times the plain one.
std::string medusa_speed_table(const std::string& shape, const std::vector<MedusaSpeed>& speeds);

}  // namespace medusa
