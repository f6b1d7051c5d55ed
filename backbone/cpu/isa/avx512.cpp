#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/gemm/avx512_kernel.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels* avx512_kernels() { return has_avx512() ? &kKernelTable<Avx512Kernel> : nullptr; }

}  // namespace medusa
