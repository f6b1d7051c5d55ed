#include "backbone/cpu/cpu_kernels.h"

#include "backbone/cpu/cpu_features.h"

namespace medusa {

const CpuKernels* best_cpu_kernels() {
  if (const CpuKernels* amx = amx_kernels()) return amx;
  return dot_products_are_fast() ? dot_kernels() : avx512_kernels();
}

const CpuKernels* kernels_for(bool in_blocks) {
  return in_blocks ? vnni_kernels() : best_cpu_kernels();
}

}  // namespace medusa
