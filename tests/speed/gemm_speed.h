// How long the GEMMs of a model of known sizes take on a GPU, for few and many rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/speed/step_speed.h"

namespace medusa {

/// A weight with so many rows.
struct GemmSpeed {
  std::string weight;  // "qkv", "output", "gate_up", "down", "lm_head"
  int64_t num_outputs = 0, num_inputs = 0;
  int32_t num_rows = 0;
  SpeedFigure us{};          // of one GEMM among many in a captured graph, each of other weights
  SpeedFigure library_us{};  // the same by LibTorch, started one by one
  double bytes = 0;          // of the weight
};

/// The four weights of a layer and the LM head in bfloat16, each with the shape's numbers of rows.
/// No weight is found in a cache: each is one of many copies.
/// @param samples  of each; at least one.
/// @throws UserError  there is no GPU, or no kernels for it.
std::vector<GemmSpeed> measure_gemm_speed(const SpeedShape& shape, at::Device device,
                                          int64_t samples);

std::string gemm_speed_table(const std::string& shape, const std::vector<GemmSpeed>& speeds);

}  // namespace medusa
