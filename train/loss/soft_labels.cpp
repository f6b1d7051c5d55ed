#include "train/loss/soft_labels.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "heads/best_on_device.h"
#include "heads/top_k_drafts.h"

namespace medusa {
namespace {

/// @param best  descending.
void share_among(std::span<const ScoredRow> best, int32_t* rows, float* probs) {
  float sum = 0;
  for (size_t i = 0; i < best.size(); ++i) {
    rows[i] = best[i].row;
    probs[i] = std::exp(best[i].logit - best[0].logit);
    sum += probs[i];
  }
  for (size_t i = 0; i < best.size(); ++i) probs[i] /= sum;
}

/// @param logits  [n, V_t] float32 on the CPU.
/// @param begin   place of its first row among the labels.
void label_rows(const at::Tensor& logits, int64_t begin, SoftLabels& labels) {
  const std::span<const float> all(logits.const_data_ptr<float>(),
                                   static_cast<size_t>(logits.numel()));
  const size_t width = static_cast<size_t>(logits.size(1));
  at::parallel_for(0, logits.size(0), 4, [&](int64_t first, int64_t last) {
    std::vector<ScoredRow> best(static_cast<size_t>(labels.size));
    for (int64_t i = first; i < last; ++i) {
      const auto to = static_cast<size_t>((begin + i) * labels.size);
      top_k_drafts(all.subspan(static_cast<size_t>(i) * width, width), best);
      share_among(best, &labels.rows[to], &labels.probs[to]);
    }
  });
}

/// The same of logits on a GPU.
void label_rows_there(const at::Tensor& logits, int64_t begin, SoftLabels& labels) {
  const BestRows found = best_on_device(logits, labels.size);
  for (int64_t i = 0; i < found.size(); ++i) {
    const auto to = static_cast<size_t>((begin + i) * labels.size);
    share_among(found.row(i), &labels.rows[to], &labels.probs[to]);
  }
}

}  // namespace

std::span<const int32_t> SoftLabels::rows_of(int64_t state) const {
  return std::span(rows).subspan(static_cast<size_t>(state * size), static_cast<size_t>(size));
}
std::span<const float> SoftLabels::probs_of(int64_t state) const {
  return std::span(probs).subspan(static_cast<size_t>(state * size), static_cast<size_t>(size));
}

SoftLabels make_soft_labels(const at::Tensor& hidden, const at::Tensor& output, int64_t size,
                            int64_t chunk) {
  MEDUSA_ASSERT(size >= 1 && size <= output.size(0) && chunk >= 1, size, chunk);
  const int64_t num_states = hidden.size(0);
  SoftLabels labels;
  labels.size = size;
  labels.rows.resize(static_cast<size_t>(num_states * size));
  labels.probs.resize(labels.rows.size());
  for (int64_t begin = 0; begin < num_states; begin += chunk) {
    const int64_t n = std::min(chunk, num_states - begin);
    const at::Tensor states = hidden.narrow(0, begin, n).to(output.device(), output.scalar_type());
    const at::Tensor logits = at::linear(states, output).to(at::kFloat).contiguous();  // [n, V_t]
    if (logits.is_cpu())
      label_rows(logits, begin, labels);
    else
      label_rows_there(logits, begin, labels);
  }
  return labels;
}

}  // namespace medusa
