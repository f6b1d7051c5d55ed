// The memory of a KV cache: blocks of rows with the keys and values of all layers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "backbone/model_config.h"

namespace medusa {

/// How the rows of one (layer, block, key/value head) lie in memory. B is a block's rows.
enum class KvLayout {
  Rows,   // [B, D]: what LibTorch's ops read
  Tiles,  // keys [B/16][D/2][16][2], values [B/2][D][2]: what the CPU tile kernels read
};

enum class KvSide { Keys, Values };

/// Blocks of rows. Several blocks that follow each other are allocated together, as a slab
/// [2, L, blocks, G, B, D], when the first of them is used; new memory is zero, so whatever a block
/// holds is finite.
///
/// Thread safety: none.
class KvBlocks {
 public:
  /// Elements (elements) from one place in a slab to the same place …
  struct Strides {
    int64_t values = 0;  // … of the values, from that of the keys
    int64_t layer = 0;   // … of the next layer
    int64_t block = 0;   // … of the slab's next block
    int64_t head = 0;    // … of the next key/value head
  };

  /// @param block_rows       B, a multiple of 32.
  /// @param blocks_per_slab  at least 1.
  KvBlocks(const ModelConfig& config, int64_t block_rows, int32_t blocks_per_slab,
           at::ScalarType dtype, at::Device device, KvLayout layout);

  /// Bytes of one block of a model.
  static int64_t block_bytes(const ModelConfig& config, int64_t block_rows, at::ScalarType dtype);

  /// Gives a block its memory, unless it has it.
  void allocate(int32_t block);

  KvLayout layout() const { return layout_; }
  int64_t block_rows() const { return block_rows_; }
  int64_t bytes() const;  // of all slabs
  Strides strides() const;

  /// Where the keys of a block's first layer and head begin. The block is allocated.
  void* address(int32_t block) const;

  /// The slab that holds a block, which is allocated: [2, L, blocks, G, B, D] in the layout's
  /// order.
  const at::Tensor& slab(int32_t block) const;

  /// A view of an allocated block, [G, B, D] in the layout's order.
  at::Tensor rows(KvSide side, int64_t layer, int32_t block) const;

  /// Copies one row of all layers and heads over another; both blocks are allocated.
  void copy_row(int32_t from_block, int64_t from, int32_t to_block, int64_t to);

  /// Copies the rows of a block over another's, as many as both have; both are allocated.
  /// @param source  of the same model, dtype and layout; may be this.
  void copy_block(const KvBlocks& source, int32_t from, int32_t to);

 private:
  int64_t index_in_slab(int32_t block) const { return block % blocks_per_slab_; }

  int64_t num_layers_, num_kv_heads_, head_size_, block_rows_;
  int32_t blocks_per_slab_;
  at::TensorOptions options_;
  KvLayout layout_;
  std::vector<at::Tensor> slabs_;  // undefined: not allocated yet
};

}  // namespace medusa
