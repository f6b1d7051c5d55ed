// Tensors of numbers that only their seed decides.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>

namespace medusa::fixtures {

/// Float32, standard normal.
inline at::Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat);
}

}  // namespace medusa::fixtures
