#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/gemm/amx_quant_kernel.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels* amx_quant_kernels() {
  return has_amx_int8() ? &kQuantKernelTable<AmxQuantKernel> : nullptr;
}

}  // namespace medusa
