#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/gemm/part_block_engine.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels* avx2_kernels() { return has_avx2() ? &kKernelTable<PartEngine> : nullptr; }
const CpuKernels* avx2_block_kernels() {
  return has_avx2() ? &kBlockKernelTable<PartBlockEngine> : nullptr;
}

}  // namespace medusa
