#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/gemm/dot_kernel.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels* dot_kernels() { return has_avx512_bf16() ? &kKernelTable<DotKernel> : nullptr; }

}  // namespace medusa
