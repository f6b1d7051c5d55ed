#include "backbone/cpu/block_engine.h"
#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels* vnni_kernels() {
  static constexpr CpuKernels kTable = [] {
    CpuKernels table = kKernelTable<BlockEngine>;
    table.quantise = quantise;
    return table;
  }();
  return has_avx512_vnni() ? &kTable : nullptr;
}

}  // namespace medusa
