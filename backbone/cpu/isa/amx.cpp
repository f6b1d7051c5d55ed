#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/gemm/amx_kernel.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels* amx_kernels() { return has_amx_bf16() ? &kKernelTable<AmxKernel> : nullptr; }

}  // namespace medusa
