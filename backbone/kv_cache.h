// Keys and values of several sequences: committed rows, tentative rows, commit and rewind, and
// beginnings that sequences share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backbone/block_pool.h"
#include "backbone/kv_blocks.h"
#include "backbone/model_config.h"

namespace medusa {

/// How a cache cuts its rows into blocks, and how many of these there are.
struct KvBlocking {
  /// Rows of a block are 32, whatever a sequence holds; or all of a slot's, so that its rows lie
  /// one behind the other: slot i is block i, all are allocated at once, and none is shared.
  bool whole_slots = false;
  std::optional<int64_t> max_bytes{};  // of all blocks; none: enough for all slots at capacity
};

/// What a cache holds at a moment.
struct KvUse {
  int32_t blocks_total = 0;  // that fit into the budget
  int32_t blocks_used = 0;   // by open sequences
  int32_t blocks_kept = 0;   // of ended ones, until their place is needed
  int64_t block_rows = 0;
  int64_t bytes = 0;  // allocated
};

/// Slots for sequences. Rows [0, length) of a slot are committed; a pass writes tentative rows
/// behind them; commit() keeps some of these, in order, and drops the rest.
///
/// Rows lie in blocks of one pool, which are allocated when they are first used. A slot is opened
/// for so many rows at most, and blocks for these are reserved: then no pass lacks a place. Blocks
/// whose tokens are known can be found by their content, also after the sequence has ended, and a
/// sequence that begins alike shares them. Who writes to a block that others use gets a copy.
///
/// Bookkeeping is on the host and does not touch the bytes; commit() moves bytes only for rows that
/// do not already lie in place.
///
/// Thread safety: none.
class KvCache {
 public:
  /// @param capacity  most rows of one slot, committed and tentative together; rounded up to 32.
  /// @throws UserError  max_bytes do not hold one block.
  KvCache(const ModelConfig& config, int32_t num_slots, int64_t capacity, at::ScalarType dtype,
          at::Device device, KvLayout layout, const KvBlocking& blocking = {});

  /// The smallest max_bytes with which a cache has room for a slot of this capacity.
  static int64_t slot_bytes(const ModelConfig& config, int64_t capacity, at::ScalarType dtype,
                            bool whole_slots);

  /// Whether a slot is free, and blocks for so many rows that no open sequence may need.
  bool has_room(int64_t rows) const;

  /// Takes a free slot, whose length is 0, and reserves blocks.
  /// @param rows  most that it will hold, tentative ones included; at most the capacity.
  int32_t open(int64_t rows);
  int32_t open() { return open(capacity_); }
  void close(int32_t slot);  // gives it back

  int32_t num_slots() const { return static_cast<int32_t>(slots_.size()); }
  int32_t num_free() const;
  int64_t length(int32_t slot) const { return at(slot).length; }  // committed rows
  int64_t capacity() const { return capacity_; }
  int64_t total_rows() const { return pool_.size() * memory_.block_rows(); }  // of all sequences
  KvUse use() const;
  int64_t bytes() const { return memory_.bytes(); }  // allocated, of keys and values together

  /// Lets an empty slot begin with the blocks that hold these tokens, as far as there are any.
  /// @param most  rows to take, at most as many as tokens.
  /// @returns     rows that the slot now has.
  int64_t reuse(int32_t slot, std::span<const TokenId> tokens, int64_t most);

  /// Forgets what ended sequences left behind.
  void forget_ended() { pool_.free_kept(); }

  /// Gives rows [length, rows) blocks that no other sequence uses. plan_forward() calls it.
  void make_room(int32_t slot, int64_t rows);

  /// Keeps tentative rows (indices inside the slot's segment of the last pass, ascending); they
  /// move to length(), length() + 1, …; all other tentative rows are forgotten.
  /// @param tokens  of these rows, so that their blocks can be found; empty: they cannot.
  void commit(int32_t slot, std::span<const int32_t> rows, std::span<const TokenId> tokens = {});

  /// Gives an empty slot the committed rows of another cache of the same model.
  void take_rows(int32_t slot, const KvCache& from, int32_t from_slot);

  /// Forgets committed rows from length on.
  void rewind(int32_t slot, int64_t length);

  KvLayout layout() const { return memory_.layout(); }

  /// Where a slot's blocks lie, in order: KvBlocks::address(). Layout Tiles only. Valid until the
  /// slot gets or loses a block.
  std::span<uint16_t* const> tiles(int32_t slot) const { return at(slot).tiles; }
  KvBlocks::Strides strides() const { return memory_.strides(); }

  /// A slot's first rows, [G, count, D]: a view if they lie in one block, else a copy. Layout Rows.
  at::Tensor read(KvSide side, int64_t layer, int32_t slot, int64_t count) const;

  /// Writes rows [G, n, D], in any dtype, from row `begin` on, for which there is room. Layout
  /// Rows.
  void write(KvSide side, int64_t layer, int32_t slot, int64_t begin, const at::Tensor& rows);

  /// [L, S, G, capacity, D] of a cache of whole slots, in the layout's order.
  at::Tensor keys() const;
  at::Tensor values() const;

 private:
  struct Slot {
    bool open = false;
    int64_t length = 0;
    int64_t reserved = 0;          // blocks
    std::vector<int32_t> blocks;   // of its rows, committed and tentative
    std::vector<uint16_t*> tiles;  // their addresses, in layout Tiles
    std::vector<TokenId> tokens;   // of its first rows, as far as they are known
    std::vector<BlockName> names;  // of its first full blocks
  };

  struct PoolSize {
    int64_t block_rows = 0, blocks = 0, blocks_per_slab = 0;
  };
  static PoolSize pool_size(const ModelConfig& config, int32_t num_slots, int64_t capacity,
                            at::ScalarType dtype, const KvBlocking& blocking);
  KvCache(const ModelConfig& config, const PoolSize& size, int32_t num_slots, int64_t capacity,
          at::ScalarType dtype, at::Device device, KvLayout layout, bool whole_slots);

  Slot& at(int32_t slot) { return slots_.at(static_cast<size_t>(slot)); }
  const Slot& at(int32_t slot) const { return slots_.at(static_cast<size_t>(slot)); }
  int64_t blocks_for(int64_t rows) const;
  int32_t take_block(std::optional<int32_t> source = std::nullopt);
  void append(Slot& slot, int32_t block);
  void own(Slot& slot, size_t index);
  void name_blocks(Slot& slot);

  int64_t capacity_;
  bool whole_slots_;
  KvBlocks memory_;
  BlockPool pool_;
  std::vector<Slot> slots_;
  int64_t reserved_ = 0;  // blocks, of all open slots
};

}  // namespace medusa
