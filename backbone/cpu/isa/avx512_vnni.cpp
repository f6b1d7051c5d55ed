#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/gemm/vnni_kernel.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels* vnni_kernels() {
  return has_avx512_vnni() ? &kQuantKernelTable<VnniKernel> : nullptr;
}

}  // namespace medusa
