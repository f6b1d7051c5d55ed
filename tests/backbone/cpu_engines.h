// The kernel tables that this machine can run or emulate, for tests that try each.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "backbone/cpu/cpu_kernels.h"

namespace medusa {

/// The AMX engine on emulated tile instructions (emulated_amx.cpp); null without AVX-512.
const CpuKernels* emulated_amx_kernels();

inline std::vector<const CpuKernels*> runnable_kernels() {
  std::vector<const CpuKernels*> tables;
  for (const CpuKernels* table :
       {avx512_kernels(), dot_kernels(), amx_kernels(), emulated_amx_kernels()})
    if (table != nullptr) tables.push_back(table);
  return tables;
}

/// A test on every engine; skipped on a machine that has none.
class CpuEngines : public testing::Test {
 protected:
  void SetUp() override {
    if (runnable_kernels().empty()) GTEST_SKIP() << "no AVX-512";
  }
};

}  // namespace medusa
