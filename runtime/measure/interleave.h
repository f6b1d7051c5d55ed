// Timing things by turns.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/measure/quantiles.h"

namespace medusa {

/// The time for which a thing is done before its samples count. A processor slows its clock down
/// after wide vector work and takes its time to come back: measured on an Emerald Rapids Xeon, a
/// plain step takes 5.5 ms right after steps of 64 rows, 4.3 after 25 ms, 2.7 from 70 ms on. A text
/// is decoded with steps of about one size, so the settled time is the one to know.
inline constexpr std::chrono::milliseconds kSettling{80};
inline constexpr int64_t kSamplesPerTurn = 3;

/// What a thing takes where nothing else runs. Other programs make a sample longer, never shorter,
/// so the lower fifth stands for all.
inline double undisturbed(std::vector<double> samples) { return quantile(std::move(samples), 0.2); }

/// Things take turns, so that a machine that changes its pace changes it for all.
/// @param num_samples  of each thing.
/// @param step         step(i) does thing i and returns its sample.
/// @param keep         keep(i, sample) is called for each sample that counts; returns whether to go
///                     on.
template <typename Step, typename Keep>
void interleave(size_t num_things, int64_t num_samples, const Step& step, const Keep& keep) {
  using Clock = std::chrono::steady_clock;
  for (int64_t done = 0; done < num_samples; done += kSamplesPerTurn)
    for (size_t i = 0; i < num_things; ++i) {
      const auto begin = Clock::now();
      do step(i);
      while (Clock::now() - begin < kSettling);
      for (int64_t sample = done; sample < num_samples && sample < done + kSamplesPerTurn; ++sample)
        if (!keep(i, step(i))) return;
    }
}

}  // namespace medusa
