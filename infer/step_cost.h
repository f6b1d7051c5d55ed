// What a decoding step costs by the number of its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backbone/cpu/layout/tile_layout.h"

namespace medusa {

/// Plain numbers: who makes them has measured them; infer/ itself looks at no clock.
struct StepCost {
  /// Entry N - 1: seconds of a step of N rows / of one row; ascending. Empty: rows cost nothing.
  std::vector<double> relative;
  /// Seconds of the heads' drafting / of a step of one row; nothing: unknown.
  std::optional<double> drafting{};

  /// Beyond the last entry each row costs what the last one did.
  double operator()(int32_t rows) const {
    if (relative.empty()) return 1;
    const auto n = static_cast<std::size_t>(rows);
    if (n <= relative.size()) return relative[n - 1];
    const double last = relative.back();
    const double slope = relative.size() > 1 ? last - relative[relative.size() - 2] : 0;
    return last + slope * static_cast<double>(n - relative.size());
  }

  static constexpr double kPartEmpty = 1.25;

  /// Gives the cost for each of several sequences that run as many rows each in one pass and draft
  /// one after the other, over a step of one row each. Where they fill a tile by themselves their
  /// further rows cost kPartEmpty times what the curve says: as a rule some sequences take many
  /// and most none, and the tile that these begin stays part empty. (Measured with AVX2 in
  /// bfloat16: four further rows of 16 sequences cost 1.5 times what they do among 16 such rows,
  /// eight 1.2 times.)
  StepCost for_batch(int32_t num_sequences) const {
    if (num_sequences == 1 || relative.empty()) return *this;
    const double plain = (*this)(num_sequences);
    const double cost_factor = num_sequences < kTileRows ? 1 : kPartEmpty;
    StepCost shared;
    for (std::size_t n = 1; n <= relative.size(); ++n) {
      const double all = (*this)(static_cast<int32_t>(n) * num_sequences) / plain;
      shared.relative.push_back(1 + cost_factor * (all - 1));
    }
    if (drafting) shared.drafting = *drafting * num_sequences / plain;
    return shared;
  }
};

}  // namespace medusa
