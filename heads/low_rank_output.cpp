#include "heads/low_rank_output.h"

#include <ATen/ATen.h>

#include "base/check.h"

namespace medusa {

OutputFactors factorize_output(const at::Tensor& rows, int64_t rank) {
  MEDUSA_ASSERT(rank >= 1 && rank <= rows.size(1), rank, rows.size(1));
  const at::Tensor exact = rows.to(at::kCPU, at::kDouble);
  const at::Tensor centred = exact - exact.mean(0, /*keepdim=*/true);  // [V_t, H]
  // The right singular vectors from the H x H product: V_t is often a hundred times H.
  const auto [values, vectors] = at::linalg_eigh(at::mm(centred.t(), centred));  // ascending
  const at::Tensor basis = vectors.narrow(1, vectors.size(1) - rank, rank);      // [H, r]
  const auto to_float = [&](const at::Tensor& x) {
    return x.to(at::kFloat).to(rows.device()).contiguous();
  };
  return {to_float(basis.t()), to_float(at::mm(centred, basis))};
}

}  // namespace medusa
