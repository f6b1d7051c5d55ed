#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/gemm/amx_block_engine.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels* amx_block_kernels() {
  return has_amx_int8() ? &kBlockKernelTable<AmxBlockEngine> : nullptr;
}

}  // namespace medusa
