// Attention by loops in double: the slow twin of backbone/attention.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "backbone/forward_plan.h"
#include "backbone/kv_cache.h"

namespace medusa::reference {

/// @param query   [N, A, D] float32.
/// @param window  last tokens that a row sees; 0: all.
/// @returns       [N, A * D] float32.
inline at::Tensor attention(const ForwardPlan& plan, int64_t layer, const at::Tensor& query,
                            const KvCache& cache, int64_t window = 0) {
  const int64_t heads = query.size(1), size = query.size(2);
  const at::Tensor out = at::zeros({plan.size(), heads * size}, at::kFloat);
  for (int64_t i = 0; i < plan.size(); ++i) {
    const BatchToken& row = plan.rows[static_cast<size_t>(i)];
    std::vector<int64_t> visible;
    for (int64_t r = 0; r < row.start; ++r) visible.push_back(r);
    for (const int64_t r : plan.path(row)) visible.push_back(r);
    const int64_t count = *std::max_element(visible.begin(), visible.end()) + 1;
    const at::Tensor all_keys = cache.read(KvSide::Keys, layer, row.slot, count);  // [G, count, D]
    const at::Tensor all_values = cache.read(KvSide::Values, layer, row.slot, count);
    while (window > 0 && std::ssize(visible) > window) visible.erase(visible.begin());
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t group = head / (heads / all_keys.size(0));
      const at::Tensor keys = all_keys[group].to(at::kDouble);
      const at::Tensor values = all_values[group].to(at::kDouble);
      const at::Tensor q = query[i][head].to(at::kDouble);
      std::vector<double> weights;
      for (const int64_t r : visible)
        weights.push_back(at::dot(q, keys[r]).item<double>() /
                          std::sqrt(static_cast<double>(size)));
      const double max = *std::max_element(weights.begin(), weights.end());
      double sum = 0;
      for (double& weight : weights) sum += weight = std::exp(weight - max);
      at::Tensor attention_out = at::zeros({size}, at::kDouble);
      for (size_t v = 0; v < visible.size(); ++v)
        attention_out = attention_out + values[visible[v]] * (weights[v] / sum);
      out[i].narrow(0, head * size, size).copy_(attention_out);
    }
  }
  return out;
}

}  // namespace medusa::reference
