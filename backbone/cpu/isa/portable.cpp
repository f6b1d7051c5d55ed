#include "backbone/cpu/gemm/part_block_engine.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels* plain_kernels() { return &kKernelTable<PartEngine>; }
const CpuKernels* plain_block_kernels() { return &kBlockKernelTable<PartBlockEngine>; }

}  // namespace medusa
