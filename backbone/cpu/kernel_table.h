// The kernels of one ISA as a table. For kernel files only (simd.h).
#pragma once

#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cpu/gemm/gemm_loop.h"
#include "backbone/cpu/ops/attention_loop.h"
#include "backbone/cpu/ops/qkv_loop.h"
#include "backbone/cpu/ops/row_loop.h"

namespace medusa {
namespace {

template <typename Kernel>
constexpr CpuKernels kKernelTable = {
    .name = Kernel::kName,
    .element_bytes = sizeof(typename Kernel::Element),
    .begin = Kernel::begin,
    .end = Kernel::end,
    .upcast = upcast,
    .rms_norm = rms_norm<Kernel>,
    .rms_norm_bf16 = rms_norm_bf16,
    .pack_rows = pack_rows<Kernel>,
    .gemm = gemm<Kernel>,
    .gemm_add = gemm_add<Kernel>,
    .gemm_swiglu = gemm_swiglu<Kernel>,
    .gemm_qkv = gemm_qkv<Kernel>,
    .rope_and_cache = rope_and_cache<Kernel>,
    .attend = attend<Kernel>,
};

/// Of an ISA for quantized weights.
template <typename Kernel>
constexpr CpuKernels kQuantKernelTable = [] {
  CpuKernels table = kKernelTable<Kernel>;
  table.quantize = quantize_rows<Kernel>;
  return table;
}();

}  // namespace
}  // namespace medusa
