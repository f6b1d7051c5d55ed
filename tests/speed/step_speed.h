// How long a plain step takes on a model of random weights, beside what its device can do at most.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backbone/llama.h"
#include "base/token.h"

namespace medusa {

/// A model whose steps are timed, and which steps.
struct SpeedShape {
  std::string name;
  ModelConfig config;
  std::vector<int64_t> contexts;  // tokens before a step
  std::vector<int32_t> rows;      // tokens of a step, ascending
};

/// "tiny" (for tests), "smollm2-135m", "llama-2-7b" and "llama-3-8b".
/// @throws UserError  none of these.
SpeedShape speed_shape(std::string_view name);

/// Median and quartiles of the samples.
struct SpeedFigure {
  double low = 0, middle = 0, high = 0;
};

/// A text of this length. Which tokens are in it does not change what it costs.
std::vector<TokenId> speed_text(int64_t length, int64_t vocab_size);

/// @param samples  at least one.
SpeedFigure speed_figure(const std::vector<double>& samples);

/// One thing that was timed.
struct SpeedRow {
  std::string name;       // a step's: way, rows and context
  SpeedFigure ms{};       // until the device was done
  double host_ms = 0;     // median, until the call came back
  double bytes = 0;       // a copy's, read and written; of the weights that a step reads
  double flops = 0;       // a product's
  double difference = 0;  // largest of a step's logits from the plain way's, in their deviations
  bool is_step = false;
};

struct StepSpeed {
  std::string shape, device, dtype, kernels;
  double weight_bytes = 0;  // that a step reads
  std::vector<SpeedRow> rows;
};

/// A large copy, a large product and the shape's steps take turns; each step by LibTorch's ops
/// (plain), by our kernels where they run such a model (kernels), and by these in a captured graph
/// where there are any (graph).
/// @param samples  of each; at least one.
/// @throws std::runtime_error  a step's logits are not all finite.
StepSpeed measure_step_speed(const SpeedShape& shape, at::ScalarType dtype, at::Device device,
                             int64_t samples, uint64_t seed);

/// Runs one step of each of the shape's kinds by our kernels, each kernel by itself, between two
/// calls that mark the part for a profiler.
/// @param mark  mark(true) before a step, mark(false) behind it.
void run_marked_steps(const SpeedShape& shape, at::ScalarType dtype, at::Device device,
                      uint64_t seed, const std::function<void(bool)>& mark);

/// Rates of copy and product; of each step its time, the host's, and the share of the copy's rate
/// that reading the weights once in that time makes.
std::string step_speed_table(const StepSpeed& speed);

}  // namespace medusa
