#include "train/soft_labels.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "heads/best_guesses.h"

namespace medusa {
namespace {

void label_row(std::span<const float> logits, std::span<ScoredRow> best, int32_t* rows,
               float* probs) {
  best_guesses(logits, best);
  float sum = 0;
  for (size_t i = 0; i < best.size(); ++i) {
    rows[i] = best[i].row;
    probs[i] = std::exp(best[i].logit - best[0].logit);
    sum += probs[i];
  }
  for (size_t i = 0; i < best.size(); ++i) probs[i] /= sum;
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
    const at::Tensor logits =
        at::linear(states, output).to(at::kCPU, at::kFloat).contiguous();  // [n, V_t]
    const std::span<const float> all(logits.const_data_ptr<float>(),
                                     static_cast<size_t>(logits.numel()));
    const size_t width = static_cast<size_t>(logits.size(1));
    at::parallel_for(0, n, 4, [&](int64_t first, int64_t last) {
      std::vector<ScoredRow> best(static_cast<size_t>(size));
      for (int64_t i = first; i < last; ++i) {
        const int64_t to = (begin + i) * size;
        label_row(all.subspan(static_cast<size_t>(i) * width, width), best,
                  &labels.rows[static_cast<size_t>(to)], &labels.probs[static_cast<size_t>(to)]);
      }
    });
  }
  return labels;
}

}  // namespace medusa
