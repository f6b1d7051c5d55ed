// top_k_drafts.h for logits on a GPU: a few numbers of each row leave it, not the rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "heads/top_k_drafts.h"

namespace medusa {

/// The largest logits of each of m rows.
struct BestRows {
  int64_t count = 0;            // k
  std::vector<ScoredRow> best;  // [m, k] descending; of equal ones the lower index first
  std::vector<float> log_sums;  // [m] log of the sum of e^logit over the row

  int64_t size() const { return static_cast<int64_t>(log_sums.size()); }  // m
  std::span<const ScoredRow> row(int64_t index) const {
    return std::span(best).subspan(static_cast<size_t>(index * count), static_cast<size_t>(count));
  }
};

/// Which of several logits as large as the last one that is kept is up to the device.
/// @param logits  [m, V_t] float32.
/// @param count   k, at most V_t.
BestRows best_on_device(const at::Tensor& logits, int64_t count);

}  // namespace medusa
