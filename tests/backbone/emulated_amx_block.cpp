// As emulated_amx.cpp, the kernel for quantized weights.
#define __AMX_INT8__ 1  // what amx_quant_kernel.h asks for

// The loops must take the place of the instructions before the kernel is read.
// clang-format off
#include "tests/backbone/emulated_tiles.h"
#include "backbone/cpu/gemm/amx_quant_kernel.h"
// clang-format on
#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels*
emulated_amx_quant_kernels();  // also in cpu_isas.h, whose templates stay out of this file

const CpuKernels* emulated_amx_quant_kernels() {
  static constexpr CpuKernels kTable = [] {
    CpuKernels table = kQuantKernelTable<AmxQuantKernel>;
    table.name = "emulated AMX tiles, block weights";
    return table;
  }();
  return has_avx512_vnni() ? &kTable : nullptr;
}

}  // namespace medusa
