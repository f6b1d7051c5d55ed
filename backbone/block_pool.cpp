#include "backbone/block_pool.h"

#include <utility>

#include "base/check.h"
#include "base/fingerprint.h"

namespace medusa {

BlockName block_name(const BlockName& before, std::span<const TokenId> tokens) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(tokens.data());
  return Fingerprint().add(before).add(std::span(bytes, tokens.size_bytes())).digest();
}

int32_t BlockPool::take() {
  int32_t block = 0;
  if (!free_.empty()) {
    block = *free_.begin();
    free_.erase(free_.begin());
  } else if (std::ssize(blocks_) < size_) {
    block = static_cast<int32_t>(blocks_.size());
    blocks_.emplace_back();
  } else {
    MEDUSA_ASSERT(!kept_.empty(), size());
    block = kept_.begin()->second;
    kept_.erase(kept_.begin());
    take_name(at(block));
  }
  at(block).users = 1;
  return block;
}

std::optional<int32_t> BlockPool::take_named(const BlockName& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  Block& block = at(found->second);
  if (block.users++ == 0) kept_.erase(block.kept_at);
  return found->second;
}

void BlockPool::release(int32_t block) {
  Block& each = at(block);
  MEDUSA_ASSERT(each.users > 0, block);
  if (--each.users > 0) return;
  if (each.name.empty()) {
    free_.insert(block);
    return;
  }
  each.kept_at = releases_++;
  kept_.emplace(each.kept_at, block);
}

void BlockPool::name(int32_t block, const BlockName& name) {
  Block& each = at(block);
  MEDUSA_ASSERT(each.users > 0 && each.name.empty() && !name.empty(), block, each.users);
  if (by_name_.emplace(name, block).second) each.name = name;
}

void BlockPool::forget(int32_t block) {
  Block& each = at(block);
  MEDUSA_ASSERT(each.users > 0, block);
  take_name(each);
}

void BlockPool::free_kept() {
  for (const auto& [released, block] : kept_) {
    take_name(at(block));
    free_.insert(block);
  }
  kept_.clear();
}

void BlockPool::take_name(Block& block) {
  if (block.name.empty()) return;
  by_name_.erase(block.name);
  block.name.clear();
}

}  // namespace medusa
