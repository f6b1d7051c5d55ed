#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/gemm/vec_quant_kernel.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels* avx2_kernels() { return has_avx2() ? &kKernelTable<VecKernel> : nullptr; }
const CpuKernels* avx2_quant_kernels() {
  return has_avx2() ? &kQuantKernelTable<VecQuantKernel> : nullptr;
}

}  // namespace medusa
