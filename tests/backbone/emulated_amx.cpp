// The AMX kernel with its tile instructions written out as loops, so that the code which runs on
// AMX is tested on every machine with AVX-512. Compiled like the kernel files, without AMX; see
// tests/CMakeLists.txt.
#define __AMX_BF16__ 1  // what amx_kernel.h asks for

// The loops must take the place of the instructions before the kernel is read.
// clang-format off
#include "tests/backbone/emulated_tiles.h"
#include "backbone/cpu/gemm/amx_kernel.h"
// clang-format on
#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels*
emulated_amx_kernels();  // also in cpu_isas.h, whose templates stay out of this file

const CpuKernels* emulated_amx_kernels() {
  return has_avx512() ? &kKernelTable<AmxKernel> : nullptr;
}

}  // namespace medusa
