// Which samples train the heads and which only judge them.
#pragma once

#include <cstdint>
#include <vector>

namespace medusa {

struct SampleSplit {
  std::vector<int64_t> train;       // ascending sample indices
  std::vector<int64_t> validation;  // ascending; the others
};

/// Depends on nothing but its arguments: calibration finds training's validation samples again.
/// @param fraction  of the samples, rounded; at least one stays on each side if fraction > 0 and
///                  there are two.
SampleSplit split_samples(int64_t num_samples, double fraction, uint64_t seed);

}  // namespace medusa
