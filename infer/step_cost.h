// What a decoding step costs by the number of its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

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

  /// Gives the cost for each of several sequences that run as many rows each in one pass and draft
  /// one after the other, over a step of one row each.
  StepCost for_batch(int32_t num_sequences) const {
    if (num_sequences == 1 || relative.empty()) return *this;
    const double plain = (*this)(num_sequences);
    StepCost shared;
    for (std::size_t n = 1; n <= relative.size(); ++n)
      shared.relative.push_back((*this)(static_cast<int32_t>(n) * num_sequences) / plain);
    if (drafting) shared.drafting = *drafting * num_sequences / plain;
    return shared;
  }
};

}  // namespace medusa
