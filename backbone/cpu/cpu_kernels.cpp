#include "backbone/cpu/cpu_kernels.h"

namespace medusa {

const CpuKernels* best_cpu_kernels() {
  const CpuKernels* amx = amx_kernels();
  return amx != nullptr ? amx : avx512_kernels();
}

const CpuKernels* kernels_for(bool in_blocks) {
  return in_blocks ? vnni_kernels() : best_cpu_kernels();
}

}  // namespace medusa
