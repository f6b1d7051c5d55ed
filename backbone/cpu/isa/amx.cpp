#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/gemm/amx_engine.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels* amx_kernels() { return has_amx_bf16() ? &kKernelTable<AmxEngine> : nullptr; }

}  // namespace medusa
