#include "heads/small_random.h"

#include <ATen/ATen.h>

#include <cmath>

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

}  // namespace medusa
