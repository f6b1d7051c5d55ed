// The kernel tables that this machine can run or emulate, for tests that try each.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "backbone/cpu/cpu_kernels.h"

namespace medusa {

/// The AMX kernel on emulated tile instructions (emulated_amx.cpp); null without AVX-512.
const CpuKernels* emulated_amx_kernels();

/// The same of the AMX kernel for quantized weights; null without AVX512-VNNI.
const CpuKernels* emulated_amx_quant_kernels();

inline std::vector<const CpuKernels*> those_here(std::initializer_list<const CpuKernels*> all) {
  std::vector<const CpuKernels*> tables;
  for (const CpuKernels* table : all)
    if (table != nullptr) tables.push_back(table);
  return tables;
}

/// For bfloat16 weights; never empty, as plain C++ runs everywhere.
inline std::vector<const CpuKernels*> runnable_kernels() {
  return those_here({portable_kernels(), avx2_kernels(), avx512_kernels(), dot_kernels(),
                     amx_kernels(), emulated_amx_kernels()});
}

/// For quantized weights.
inline std::vector<const CpuKernels*> runnable_quant_kernels() {
  return those_here({portable_quant_kernels(), avx2_quant_kernels(), vnni_kernels(),
                     amx_quant_kernels(), emulated_amx_quant_kernels()});
}

/// Every table that a whole pass runs on.
inline std::vector<const CpuKernels*> pass_kernels() {
  std::vector<const CpuKernels*> tables = runnable_kernels();
  for (const CpuKernels* table : runnable_quant_kernels()) tables.push_back(table);
  return tables;
}

inline constexpr CpuIsa kCpuIsas[] = {CpuIsa::Amx,  CpuIsa::Avx512Bf16, CpuIsa::Avx512,
                                      CpuIsa::Avx2, CpuIsa::Portable,   CpuIsa::Auto};

}  // namespace medusa
