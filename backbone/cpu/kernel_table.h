// The kernels of one ISA as a table. For kernel files only (lanes.h).
#pragma once

#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cpu/gemm/product_loop.h"
#include "backbone/cpu/ops/attention_loop.h"
#include "backbone/cpu/ops/qkv_loop.h"
#include "backbone/cpu/ops/row_loop.h"

namespace medusa {
namespace {

template <typename Engine>
constexpr CpuKernels kKernelTable = {
    .name = Engine::kName,
    .number_bytes = sizeof(typename Engine::Number),
    .begin = Engine::begin,
    .end = Engine::end,
    .widen = widen,
    .normalise = normalise<Engine>,
    .normalise_plain = normalise_plain,
    .tile = tile<Engine>,
    .product = product<Engine>,
    .product_add = product_add<Engine>,
    .product_swiglu = product_swiglu<Engine>,
    .product_qkv = product_qkv<Engine>,
    .place_heads = place_heads<Engine>,
    .attend = attend<Engine>,
};

/// Of an ISA for block weights.
template <typename Engine>
constexpr CpuKernels kBlockKernelTable = [] {
  CpuKernels table = kKernelTable<Engine>;
  table.quantise = quantise_rows<Engine>;
  return table;
}();

}  // namespace
}  // namespace medusa
