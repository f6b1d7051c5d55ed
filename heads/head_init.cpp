#include "heads/head_init.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/check.h"

namespace medusa {

at::Tensor small_random(int64_t rows, int64_t columns, const Random& random, int64_t block) {
  at::Tensor weight = at::empty({rows, columns}, at::kFloat);
  float* values = weight.data_ptr<float>();
  const double bound = 1.0 / std::sqrt(static_cast<double>(columns));
  for (int64_t i = 0; i < rows * columns; ++i) {
    const double unit = random.uniform(RandomUse::Init, block, static_cast<uint64_t>(i));
    values[i] = static_cast<float>((2 * unit - 1) * bound);
  }
  return weight;
}

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
