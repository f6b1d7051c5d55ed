#include "backbone/cpu/kernel_table.h"
#include "backbone/cpu/part_block_engine.h"

namespace medusa {

const CpuKernels* plain_kernels() { return &kKernelTable<PartEngine>; }
const CpuKernels* plain_block_kernels() { return &kBlockKernelTable<PartBlockEngine>; }

}  // namespace medusa
