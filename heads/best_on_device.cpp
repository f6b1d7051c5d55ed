#include "heads/best_on_device.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace medusa {

BestRows best_on_device(const at::Tensor& logits, int64_t count) {
  const auto [values, indices] = at::topk(logits, count, 1);  // [m, k]
  const at::Tensor best = values.cpu().contiguous();
  const at::Tensor rows = indices.to(at::kCPU, at::kInt).contiguous();
  const at::Tensor sums = at::logsumexp(logits, 1).cpu().contiguous();
  BestRows out;
  out.count = count;
  const auto* log_sums = sums.const_data_ptr<float>();
  out.log_sums.assign(log_sums, log_sums + sums.numel());
  const auto* logit = best.const_data_ptr<float>();
  const auto* row = rows.const_data_ptr<int32_t>();
  for (int64_t i = 0; i < best.numel(); ++i) out.best.push_back({logit[i], row[i]});
  const auto before = [](const ScoredRow& a, const ScoredRow& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.row < b.row);
  };
  for (auto begin = out.best.begin(); begin != out.best.end(); begin += count)
    std::sort(begin, begin + count, before);
  return out;
}

}  // namespace medusa
