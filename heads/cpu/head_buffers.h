// Memory of the heads on a CPU: reused from call to call, grown when more positions come.
#pragma once

#include <cstdint>

#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cpu/fused_buffers.h"
#include "heads/cpu/packed_heads.h"

namespace medusa {

/// Several equally large matrices of rows as an ISA's GEMMs read them: its Elements in tile
/// order, and RowBlocks of these where its weights are quantized.
class GemmRows {
 public:
  /// What was there is void.
  /// @param k        columns, a multiple of 32.
  /// @param kernels  live as long as this.
  void shape(const CpuKernels& kernels, int64_t num_matrices, int64_t num_rows, int64_t k);

  /// Columns [column, column + size) of a row, both multiples of 32. Different columns may be
  /// written at the same time.
  void write(int64_t i, int64_t row, int64_t column, const uint16_t* bfloat16, int64_t size) const;

  /// What GEMMs take as their rows.
  const void* matrix(int64_t i) const;

 private:
  char* elements(int64_t i) const { return elements_.data<char>() + i * matrix_bytes_; }
  char* blocks(int64_t i) const { return blocks_.data<char>() + i * blocks_bytes_; }

  const CpuKernels* kernels_ = nullptr;
  GrowingBuffer elements_, blocks_;
  int64_t depth_ = 0, matrix_bytes_ = 0, blocks_bytes_ = 0;
};

/// What a pass needs room for.
struct PassSize {
  int64_t num_positions = 0;  // M
  int64_t num_heads = 0;      // K'
  int64_t num_tokens = 0;     // E, read at each position by the last head
};

/// What M positions of K' heads pass from one GEMM to the next.
struct HeadBuffers {
  GemmRows hidden;        // one matrix [M, H]: what the first layers read
  GemmRows tokens;        // E matrices [M, H]: scaled embeddings
  GemmRows inner;         // K' matrices [M, H]: what the second GEMMs read
  GemmRows between[2];    // K' matrices [M, H]: from layer to layer, in turns
  GemmRows last;          // what outputs read: K' matrices [M, H]; if shared one [M K', H]
  GemmRows narrow;        // between the factors of low-rank outputs: K' matrices [M, r]
  GrowingBuffer sums;     // [M, K', H] float32: what GEMMs give
  GrowingBuffer rounded;  // [M, K', H] bfloat16: inner, row by row; scaled embeddings; or narrow
  GrowingBuffer states;   // [M, K', H] bfloat16: what layers add to
  GemmRows before;        // what corrections read: K' matrices [M, R] of the tokens before
  GrowingBuffer logits;   // [M, K', V_t] float32
  GrowingBuffer after;    // [M, V_t] float32: logits of one head after M tokens

  /// What was there is void.
  void shape(const CpuKernels& kernels, const PackedHeads& weights, const PassSize& pass);

  /// Room for one head's corrections after M tokens; logits stay.
  void shape_correction(const CpuKernels& kernels, const PackedHeads& weights, int64_t num_tokens);
};

}  // namespace medusa
