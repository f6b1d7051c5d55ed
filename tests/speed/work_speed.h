// How fast a model of random weights writes training text for heads, and how fast heads learn it.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/speed/step_speed.h"
#include "tools/measure/resources.h"

namespace medusa {

/// One of the two.
struct WorkSpeed {
  double per_second = 0;  // tokens that were generated; positions that were trained on
  PeakMemory peak;
};

struct WorkSpeeds {
  std::string shape, device, dtype;
  int32_t sequences = 0;   // generated at the same time
  int32_t new_tokens = 0;  // of each
  int64_t batch = 0;       // positions of an optimizer step
  WorkSpeed distil, train;
};

/// Each of `sequences` prompts is continued by `new_tokens` tokens, all at the same time, the
/// states are recorded, and the demo's kind of heads is trained on the text once, for which there
/// must be a few hundred positions. Both as the commands do it, writing of files included.
/// @param scratch  a folder for what is made, which the caller removes.
WorkSpeeds measure_work_speed(const SpeedShape& shape, at::ScalarType dtype, at::Device device,
                              int32_t sequences, int32_t new_tokens,
                              const std::filesystem::path& scratch, uint64_t seed);

std::string work_speed_table(const WorkSpeeds& speeds);

}  // namespace medusa
