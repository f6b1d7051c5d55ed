// Who uses which block of a KV cache: reference counts, contents that can be found again, eviction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/token.h"

namespace medusa {

/// The name of a full block's content: a SHA-256 of its tokens and of the name of the block before
/// it, so of all tokens up to its end. Two contents never share one.
using BlockName = std::string;

/// @param before  of the block before; empty for the first one of a sequence.
BlockName block_name(const BlockName& before, std::span<const TokenId> tokens);

/// Bookkeeping of blocks 0, 1, …; it knows nothing of their memory.
///
/// A block is free, used by one or several sequences, or kept: used by none, but named, until its
/// place is needed. The kept block that was released first goes first.
///
/// Thread safety: none.
class BlockPool {
 public:
  explicit BlockPool(int32_t num_blocks) : size_(num_blocks) {}

  int32_t size() const { return size_; }
  int32_t num_used() const { return size_ - num_free() - num_kept(); }
  int32_t num_free() const {
    return size_ + static_cast<int32_t>(free_.size()) - static_cast<int32_t>(blocks_.size());
  }
  int32_t num_kept() const { return static_cast<int32_t>(kept_.size()); }

  /// Takes a block for its first user: the lowest free one, or else a kept one, which loses its
  /// name. Not all blocks may be used.
  int32_t take();

  /// Finds a content and adds a user to its block.
  std::optional<int32_t> take_named(const BlockName& name);

  /// Ends one use. The last one frees the block, or keeps it where it has a name.
  void release(int32_t block);

  int32_t num_users(int32_t block) const { return blocks_.at(static_cast<size_t>(block)).users; }

  /// Makes a used block's content findable, unless another block has the same.
  void name(int32_t block, const BlockName& name);

  /// Frees all kept blocks.
  void free_kept();

  /// Takes a used block's name away: its content is about to change.
  void forget(int32_t block);

 private:
  struct Block {
    int32_t users = 0;
    BlockName name;       // empty: cannot be found
    int64_t kept_at = 0;  // key in kept_, while it is there
  };
  void take_name(Block& block);
  Block& at(int32_t block) { return blocks_.at(static_cast<size_t>(block)); }

  int32_t size_;
  std::vector<Block> blocks_;        // that were used so far; the others are free
  std::set<int32_t> free_;           // of these
  std::map<int64_t, int32_t> kept_;  // by when they were released
  std::unordered_map<BlockName, int32_t> by_name_;
  int64_t releases_ = 0;
};

}  // namespace medusa
