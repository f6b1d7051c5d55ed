// Keys and values of several sequences: committed rows, tentative rows, commit and rewind.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backbone/model_config.h"

namespace medusa {

/// How the rows of one (layer, slot, key/value head) lie in memory.
enum class KvLayout {
  Rows,   // [capacity, D]: what LibTorch's ops read
  Tiles,  // keys [capacity/16][D/2][16][2], values [capacity/2][D][2]: what the CPU tile kernels
          // read
};

/// Slots for sequences. Rows [0, length) of a slot are committed; a pass writes tentative rows
/// behind them; commit() keeps some of these, in order, and drops the rest.
///
/// Bookkeeping is on the host and does not touch the bytes; commit() moves bytes only for rows that
/// do not already lie in place.
///
/// Thread safety: none.
class KvCache {
 public:
  /// @param capacity  most rows of one slot, committed and tentative together; rounded up to 32.
  KvCache(const ModelConfig& config, int32_t num_slots, int64_t capacity, at::ScalarType dtype,
          at::Device device, KvLayout layout);

  int32_t open();            // takes a free slot; its length is 0
  void close(int32_t slot);  // gives it back
  int32_t num_slots() const { return static_cast<int32_t>(lengths_.size()); }
  int32_t num_free() const;
  int64_t length(int32_t slot) const {
    return lengths_[static_cast<size_t>(slot)];
  }  // committed rows
  int64_t capacity() const { return capacity_; }

  /// Keeps tentative rows (indices inside the slot's segment of the last pass, ascending); they
  /// move to length(), length() + 1, …; all other tentative rows are forgotten.
  void commit(int32_t slot, std::span<const int32_t> rows);

  /// The slot, which is empty, begins with the same rows as another one: two prompts that start
  /// alike.
  /// @param rows  committed in `from`.
  void copy_prefix(int32_t from, int32_t to, int64_t rows);

  /// Makes room for longer sequences; what is committed stays. Grows by at least half again.
  void reserve(int64_t capacity);

  /// Forgets committed rows from length on.
  void rewind(int32_t slot, int64_t length);

  KvLayout layout() const { return layout_; }
  /// [L, S, G, capacity, D] in the layout's order; the dimensions name sizes, not strides, for
  /// Tiles.
  const at::Tensor& keys() const { return keys_; }
  const at::Tensor& values() const { return values_; }
  int64_t bytes() const;  // of keys and values together

 private:
  void move_row(int32_t slot, int64_t from, int64_t to);

  int64_t num_layers_, num_kv_heads_, head_size_, capacity_;
  KvLayout layout_;
  std::vector<int64_t> lengths_;  // [S]
  std::vector<bool> used_;        // [S]
  at::Tensor keys_, values_;
};

}  // namespace medusa
