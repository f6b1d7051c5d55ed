// The kernels of the CPU step, as one table per ISA.
//
// All of them work on tiles (tile_layout.h). Rows that enter GEMMs are "Elements" of the ISA:
// bfloat16 for AMX and AVX512-BF16, float32 for the others; pointers to them are void here.
// GEMMs with quantized weights read RowBlocks instead (quant_layout.h), which quantize() makes of
// Elements. Several threads may compute different parts of the same GEMM or pass at once.
//
// A row's results are the same bits whatever the number of rows, its place among them, the thread
// that computes it, and how its path lies in the cache.
#pragma once

#include <cstdint>

#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/layout/tile_layout.h"
#include "backbone/cpu/ops/attention_types.h"
#include "backbone/execution_context.h"

namespace medusa {

struct CpuKernels {
  const char* name;
  int64_t element_bytes;  // of a Element

  // Around any use of the others on a thread. The tile registers are set up for us in between;
  // other libraries set them up for themselves.
  void (*begin)();
  void (*end)();

  /// float32 from bfloat16 bits. @param size  a multiple of 16.
  void (*upcast)(const uint16_t* from, int64_t size, float* to);

  /// RMSNorm: x / sqrt(mean(x²) + epsilon) · weight, to row `row` of tiled rows.
  /// @param size  a multiple of 32.
  void (*rms_norm)(const float* x, const float* weight, float epsilon, int64_t size, int64_t row,
                   void* rows);

  /// The same, rounded, to a plain bfloat16 row.
  void (*rms_norm_bf16)(const float* x, const float* weight, float epsilon, int64_t size,
                        uint16_t* to);

  /// Plain bfloat16 rows [num_rows, k] to tiled rows, zeros behind k.
  void (*pack_rows)(const uint16_t* from, int64_t num_rows, int64_t k, void* rows);

  /// y[row][output] = the GEMM, for the pairs in range.
  /// @param rows    num_rows tiled rows, or their RowBlocks where there is a quantize().
  /// @param stride  floats between rows of y, at least weight.n.
  void (*gemm)(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs,
               float* y, int64_t stride);

  /// y[row][output] += the GEMM.
  void (*gemm_add)(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs,
                   float* y, int64_t stride);

  /// SwiGLU: silu(gate) · up to tiled rows. The weight is packed in gate_up_order.
  /// @param out_depth  tiles of k of the rows written.
  void (*gemm_swiglu)(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs,
                      void* out, int64_t out_depth);

  /// Queries, keys and values of a layer, rotated by their position, keys and values to the cache.
  /// The weight is packed in qkv_order.
  void (*gemm_qkv)(const TileWeightView& weight, const void* rows, int64_t num_rows, Range pairs,
                   const AttentionLayer& layer);

  /// The same for heads that are normalized before RoPE, which needs the whole GEMM first.
  /// @param qkv    [num_rows][(A + 2G) D] from gemm(), with the weight packed in qkv_order.
  /// @param heads  of all A + 2G; another thread may place others at the same time.
  void (*rope_and_cache)(const AttentionLayer& layer, const float* qkv, int64_t num_rows,
                         Range heads);

  /// Attention of one tile of queries: its part of layer.attention_out.
  void (*attend)(const AttentionLayer& layer, const AttentionTile& tile,
                 const AttentionScratch& scratch);

  /// RowBlocks of tiled rows; null where GEMMs read the rows themselves.
  /// @param depth   tiles of k of a row.
  /// @param blocks  which, counted row by row.
  void (*quantize)(const void* rows, int64_t depth, Range blocks, void* row_blocks) = nullptr;
};

/// What CpuIsa::Auto stands for on a processor, for weights that are, or are not, quantized.
CpuIsa fastest_isa(const CpuFeatures& features, bool quantized);

/// Those of one ISA; null where this machine cannot run them. Auto: never null.
const CpuKernels* kernels_for(CpuIsa isa, bool quantized);

/// Each by itself; null where this machine cannot run it.
const CpuKernels* amx_kernels();
const CpuKernels* dot_kernels();
const CpuKernels* avx512_kernels();
const CpuKernels* avx2_kernels();
const CpuKernels* portable_kernels();

/// For quantized weights.
const CpuKernels* amx_quant_kernels();
const CpuKernels* vnni_kernels();
const CpuKernels* avx2_quant_kernels();
const CpuKernels* portable_quant_kernels();

/// begin() and end() of the calling thread.
class KernelRegion {
 public:
  explicit KernelRegion(const CpuKernels& kernels) : kernels_(kernels) { kernels_.begin(); }
  ~KernelRegion() { kernels_.end(); }
  KernelRegion(const KernelRegion&) = delete;
  KernelRegion& operator=(const KernelRegion&) = delete;

 private:
  const CpuKernels& kernels_;
};

}  // namespace medusa
