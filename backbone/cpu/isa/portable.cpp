#include "backbone/cpu/gemm/vec_quant_kernel.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels* portable_kernels() { return &kKernelTable<VecKernel>; }
const CpuKernels* portable_quant_kernels() { return &kQuantKernelTable<VecQuantKernel>; }

}  // namespace medusa
