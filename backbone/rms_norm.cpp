#include "backbone/rms_norm.h"

#include <ATen/ATen.h>

namespace medusa {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  const at::Tensor mean_square = (x * x).mean(-1, /*keepdim=*/true);  // [N, 1]
  return x * (mean_square + epsilon).rsqrt() * weight;
}

}  // namespace medusa
