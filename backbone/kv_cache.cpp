#include "backbone/kv_cache.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "backbone/cpu/layout/kv_tiles.h"
#include "backbone/cpu/layout/tile_layout.h"
#include "base/check.h"
#include "base/error.h"

namespace medusa {
namespace {

// Slabs are large enough for pages of memory and few, small enough to follow what is used.
constexpr int64_t kSlabBytes = int64_t{8} << 20, kSlabBlocks = 16;
constexpr int64_t kMostBlocks = int64_t{1} << 30;

int64_t whole_units(int64_t rows) { return ceil_div(rows, kKvBlockRows) * kKvBlockRows; }

/// Blocks of one slab, for so many in all. Slabs are of one size; this one leaves as few blocks
/// over as possible.
int64_t slab_blocks(int64_t blocks, int64_t block_bytes) {
  const int64_t most = std::clamp<int64_t>(kSlabBytes / block_bytes, 1, kSlabBlocks);
  if (blocks <= most) return blocks;
  int64_t best = most;
  for (int64_t size = most; size > most / 2; --size)
    if (blocks % size < blocks % best) best = size;
  return best;
}

/// Of blocks that a budget holds, those that fill slabs.
int64_t blocks_in_slabs(int64_t blocks, int64_t block_bytes) {
  return blocks - blocks % slab_blocks(blocks, block_bytes);
}

}  // namespace

KvCache::PoolSize KvCache::pool_size(const ModelConfig& config, int32_t num_slots, int64_t capacity,
                                     at::ScalarType dtype, const KvBlocking& blocking) {
  PoolSize size;
  size.block_rows = blocking.whole_slots ? capacity : kKvBlockRows;
  const int64_t bytes = KvBlocks::block_bytes(config, size.block_rows, dtype);
  size.blocks = num_slots * (capacity / size.block_rows);
  if (blocking.max_bytes) {
    const int64_t fit = std::min(*blocking.max_bytes / bytes, kMostBlocks);
    if (fit < 1)
      throw UserError(fmt::format(
          "the KV cache may take {} bytes, found blocks of {} bytes ({} rows), expected "
          "room for at least one; raise backbone.cache_mb",
          *blocking.max_bytes, bytes, size.block_rows));
    size.blocks = blocking.whole_slots ? std::min(fit, size.blocks) : blocks_in_slabs(fit, bytes);
  }
  size.blocks_per_slab = blocking.whole_slots ? size.blocks : slab_blocks(size.blocks, bytes);
  return size;
}

KvCache::KvCache(const ModelConfig& config, int32_t num_slots, int64_t capacity,
                 at::ScalarType dtype, at::Device device, KvLayout layout,
                 const KvBlocking& blocking)
    : KvCache(config, pool_size(config, num_slots, whole_units(capacity), dtype, blocking),
              num_slots, whole_units(capacity), dtype, device, layout, blocking.whole_slots) {}

KvCache::KvCache(const ModelConfig& config, const PoolSize& size, int32_t num_slots,
                 int64_t capacity, at::ScalarType dtype, at::Device device, KvLayout layout,
                 bool whole_slots)
    : capacity_(capacity),
      whole_slots_(whole_slots),
      memory_(config, size.block_rows, static_cast<int32_t>(size.blocks_per_slab), dtype, device,
              layout),
      pool_(static_cast<int32_t>(size.blocks)),
      slots_(static_cast<size_t>(whole_slots ? size.blocks : num_slots)) {
  if (whole_slots) memory_.allocate(0);
}

int64_t KvCache::slot_bytes(const ModelConfig& config, int64_t capacity, at::ScalarType dtype,
                            bool whole_slots) {
  if (whole_slots) return KvBlocks::block_bytes(config, whole_units(capacity), dtype);
  const int64_t bytes = KvBlocks::block_bytes(config, kKvBlockRows, dtype);
  const int64_t needed = ceil_div(capacity, kKvBlockRows);
  int64_t blocks = needed;
  while (blocks_in_slabs(blocks, bytes) < needed) ++blocks;
  return blocks * bytes;
}

int64_t KvCache::blocks_for(int64_t rows) const { return ceil_div(rows, memory_.block_rows()); }

int32_t KvCache::num_free() const {
  return static_cast<int32_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.open; }));
}

bool KvCache::has_room(int64_t rows) const {
  return num_free() > 0 && reserved_ + blocks_for(rows) <= pool_.size();
}

int32_t KvCache::open(int64_t rows) {
  MEDUSA_ASSERT(rows >= 1 && rows <= capacity_ && has_room(rows), rows, capacity_, reserved_,
                pool_.size());
  const auto free =
      std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.open; });
  free->open = true;
  free->reserved = blocks_for(rows);
  reserved_ += free->reserved;
  const auto slot = static_cast<int32_t>(free - slots_.begin());
  if (whole_slots_) {
    append(*free, take_block());
    MEDUSA_ASSERT(free->blocks[0] == slot, free->blocks[0], slot);  // both the lowest free ones
  }
  return slot;
}

void KvCache::close(int32_t slot) {
  Slot& each = at(slot);
  MEDUSA_ASSERT(each.open, slot);
  // The last block first: what others may begin with stays longest.
  std::for_each(each.blocks.rbegin(), each.blocks.rend(),
                [this](int32_t block) { pool_.release(block); });
  reserved_ -= each.reserved;
  each = {};
}

KvUse KvCache::use() const {
  return {pool_.size(), pool_.num_used(), pool_.num_kept(), memory_.block_rows(), memory_.bytes()};
}

/// A block with memory, for one user.
/// @param source  whose rows it begins with.
int32_t KvCache::take_block(std::optional<int32_t> source) {
  const int32_t block = pool_.take();
  try {
    memory_.allocate(block);
    if (source) memory_.copy_block(memory_, *source, block);
  } catch (...) {
    pool_.release(block);
    throw;
  }
  return block;
}

void KvCache::append(Slot& slot, int32_t block) {
  slot.blocks.push_back(block);
  if (layout() == KvLayout::Tiles)
    slot.tiles.push_back(static_cast<uint16_t*>(memory_.address(block)));
}

int64_t KvCache::reuse(int32_t slot, std::span<const TokenId> tokens, int64_t most) {
  Slot& each = at(slot);
  const auto size = static_cast<size_t>(memory_.block_rows());
  MEDUSA_ASSERT(each.open && each.length == 0 && most <= std::ssize(tokens), slot, each.length);
  if (whole_slots_) return 0;
  BlockName name;
  while (each.length < most && tokens.size() - each.tokens.size() >= size) {
    const auto content = tokens.subspan(each.tokens.size(), size);
    name = block_name(name, content);
    const std::optional<int32_t> block = pool_.take_named(name);
    if (!block) break;
    MEDUSA_ASSERT(std::ssize(each.blocks) < each.reserved, slot, each.reserved);
    append(each, *block);
    each.tokens.insert(each.tokens.end(), content.begin(), content.end());
    each.names.push_back(name);
    each.length += memory_.block_rows();
  }
  if (each.length > most) rewind(slot, most);
  return each.length;
}

/// Before a block is written.
void KvCache::own(Slot& slot, size_t index) {
  const int32_t block = slot.blocks[index];
  if (pool_.num_users(block) == 1) {
    pool_.forget(block);
    return;
  }
  const int32_t copy = take_block(block);
  pool_.release(block);
  slot.blocks[index] = copy;
  if (layout() == KvLayout::Tiles)
    slot.tiles[index] = static_cast<uint16_t*>(memory_.address(copy));
}

void KvCache::make_room(int32_t slot, int64_t rows) {
  Slot& each = at(slot);
  const auto end = static_cast<size_t>(blocks_for(rows));
  MEDUSA_ASSERT(each.open && std::ssize(each.blocks) <= each.reserved &&
                    static_cast<int64_t>(end) <= each.reserved,
                slot, rows, each.reserved);
  for (auto i = static_cast<size_t>(each.length / memory_.block_rows()); i < end; ++i) {
    if (i < each.blocks.size())
      own(each, i);
    else
      append(each, take_block());
  }
}

void KvCache::commit(int32_t slot, std::span<const int32_t> rows, std::span<const TokenId> tokens) {
  Slot& each = at(slot);
  MEDUSA_ASSERT(tokens.empty() || tokens.size() == rows.size(), tokens.size(), rows.size());
  const int64_t start = each.length, size = memory_.block_rows();
  int64_t least = 0;
  for (const int32_t row : rows) {
    MEDUSA_ASSERT(row >= least && start + row < capacity_, row, least, start, capacity_);
    least = row + 1;
  }
  make_room(slot, start + least);
  int64_t to = start;
  for (const int32_t row : rows) {
    const int64_t from = start + row;
    if (from != to)  // ascending rows: what is overwritten was read before
      memory_.copy_row(each.blocks[static_cast<size_t>(from / size)], from % size,
                       each.blocks[static_cast<size_t>(to / size)], to % size);
    ++to;
  }
  each.length = to;
  if (std::ssize(each.tokens) == start) {
    each.tokens.insert(each.tokens.end(), tokens.begin(), tokens.end());
    name_blocks(each);
  }
}

/// Full blocks of known tokens can be found from now on.
void KvCache::name_blocks(Slot& slot) {
  const auto size = static_cast<size_t>(memory_.block_rows());
  while (!whole_slots_ && (slot.names.size() + 1) * size <= slot.tokens.size()) {
    const size_t index = slot.names.size();
    slot.names.push_back(block_name(index == 0 ? BlockName() : slot.names.back(),
                                    std::span(slot.tokens).subspan(index * size, size)));
    pool_.name(slot.blocks[index], slot.names.back());
  }
}

void KvCache::take_rows(int32_t slot, const KvCache& from, int32_t from_slot) {
  Slot& each = at(slot);
  const Slot& source = from.at(from_slot);
  MEDUSA_ASSERT(each.length == 0 && source.open, slot, from_slot);
  // Blocks are of one size, or each slot is one.
  MEDUSA_ASSERT(whole_slots_ == from.whole_slots_ && layout() == from.layout(), slot, from_slot);
  make_room(slot, source.length);
  for (size_t i = 0; i < static_cast<size_t>(from.blocks_for(source.length)); ++i)
    memory_.copy_block(from.memory_, source.blocks[i], each.blocks[i]);
  each.length = source.length;
}

void KvCache::rewind(int32_t slot, int64_t length) {
  Slot& each = at(slot);
  MEDUSA_ASSERT(length >= 0 && length <= each.length, length, each.length);
  each.length = length;
  const auto rows = static_cast<size_t>(length);
  each.tokens.resize(std::min(each.tokens.size(), rows));
  each.names.resize(std::min(each.names.size(), rows / static_cast<size_t>(memory_.block_rows())));
}

at::Tensor KvCache::read(KvSide side, int64_t layer, int32_t slot, int64_t count) const {
  MEDUSA_ASSERT(layout() == KvLayout::Rows);
  const Slot& each = at(slot);
  const int64_t blocks = blocks_for(count);
  MEDUSA_ASSERT(count > 0 && blocks <= std::ssize(each.blocks), count, each.blocks.size());
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < blocks; ++i)
    parts.push_back(memory_.rows(side, layer, each.blocks[static_cast<size_t>(i)]));
  return (blocks == 1 ? parts[0] : at::cat(parts, 1)).narrow(1, 0, count);
}

void KvCache::write(KvSide side, int64_t layer, int32_t slot, int64_t begin,
                    const at::Tensor& rows) {
  MEDUSA_ASSERT(layout() == KvLayout::Rows);
  const Slot& each = at(slot);
  const int64_t size = memory_.block_rows(), end = begin + rows.size(1);
  for (int64_t from = begin, next = 0; from < end; from = next) {
    next = std::min(end, (from / size + 1) * size);
    memory_.rows(side, layer, each.blocks.at(static_cast<size_t>(from / size)))
        .narrow(1, from % size, next - from)
        .copy_(rows.narrow(1, from - begin, next - from));
  }
}

at::Tensor KvCache::keys() const {
  MEDUSA_ASSERT(whole_slots_);
  return memory_.slab(0)[0];
}

at::Tensor KvCache::values() const {
  MEDUSA_ASSERT(whole_slots_);
  return memory_.slab(0)[1];
}

}  // namespace medusa
