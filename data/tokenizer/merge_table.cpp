#include "data/tokenizer/merge_table.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"

namespace medusa {

MergeTable::MergeTable(size_t num_merges) : slots_(std::bit_ceil(2 * num_merges + 1)) {}

size_t MergeTable::start(TokenId left, TokenId right) const {
  const uint64_t key =
      static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  return (key * 0x9E3779B97F4A7C15ULL >> 20) & (slots_.size() - 1);  // Fibonacci hashing
}

const MergeTable::Slot* MergeTable::find(TokenId left, TokenId right) const {
  for (size_t i = start(left, right);; i = (i + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[i];
    if (slot.left == left && slot.right == right) return &slot;
    if (slot.left < 0) return nullptr;
  }
}

bool MergeTable::add(TokenId left, TokenId right, int32_t rank, TokenId merged) {
  MEDUSA_ASSERT(left >= 0 && right >= 0, left, right);
  size_t i = start(left, right);
  for (; slots_[i].left >= 0; i = (i + 1) & (slots_.size() - 1))
    if (slots_[i].left == left && slots_[i].right == right) return false;
  slots_[i] = {left, right, rank, merged};
  return true;
}

/// A pair that could be merged when it was looked at; stale if either token has changed since.
struct MergeTable::Candidate {
  uint64_t order;  // rank, then position: the lowest goes first
  TokenId left;
  TokenId right;
  TokenId merged;

  bool operator<(const Candidate& other) const { return order > other.order; }  // for a min-heap
};

void MergeTable::apply(std::vector<TokenId>& tokens, size_t begin) const {
  if (tokens.size() - begin > kShortWord)
    apply_long(tokens, begin);
  else if (tokens.size() - begin > 1)
    apply_short(tokens, begin);
}

void MergeTable::apply_short(std::vector<TokenId>& tokens, size_t begin) const {
  size_t size = tokens.size() - begin;
  TokenId* word = tokens.data() + begin;
  std::array<const Slot*, kShortWord> merges{};  // of each token with its right neighbor
  for (size_t i = 0; i + 1 < size; ++i) merges[i] = find(word[i], word[i + 1]);
  for (;;) {
    size_t best = size;
    for (size_t i = 0; i + 1 < size; ++i)
      if (merges[i] != nullptr && (best == size || merges[i]->rank < merges[best]->rank)) best = i;
    if (best == size) break;
    word[best] = merges[best]->merged;
    --size;
    std::copy(word + best + 2, word + size + 1, word + best + 1);
    std::copy(&merges[best + 1], &merges[size], &merges[best]);
    if (best + 1 < size) merges[best] = find(word[best], word[best + 1]);
    if (best > 0) merges[best - 1] = find(word[best - 1], word[best]);
  }
  tokens.resize(begin + size);
}

void MergeTable::apply_long(std::vector<TokenId>& tokens, size_t begin) const {
  const size_t count = tokens.size() - begin;
  MEDUSA_ASSERT(count < (size_t{1} << 31), count);
  const auto size = static_cast<int32_t>(count);
  // Tokens keep their places; the place of a token merged into its left neighbor becomes -1.
  std::vector<int32_t> next(count);
  std::vector<int32_t> previous(count);
  std::vector<Candidate> heap;
  heap.reserve(count);
  const auto at = [&](int32_t i) -> TokenId& { return tokens[begin + static_cast<size_t>(i)]; };
  const auto look_at = [&](int32_t i, int32_t j) {
    const Slot* slot = find(at(i), at(j));
    if (slot == nullptr) return;
    heap.push_back({static_cast<uint64_t>(slot->rank) << 32 | static_cast<uint32_t>(i), at(i),
                    at(j), slot->merged});
    std::push_heap(heap.begin(), heap.end());
  };
  for (int32_t i = 0; i < size; ++i) {
    next[static_cast<size_t>(i)] = i + 1;
    previous[static_cast<size_t>(i)] = i - 1;
    if (i + 1 < size) look_at(i, i + 1);
  }
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate best = heap.back();
    heap.pop_back();
    const auto i = static_cast<int32_t>(best.order & 0xFFFFFFFF);
    const int32_t j = next[static_cast<size_t>(i)];
    if (j >= size || at(i) != best.left || at(j) != best.right) continue;  // stale
    at(i) = best.merged;
    at(j) = -1;
    const int32_t after = next[static_cast<size_t>(j)];
    next[static_cast<size_t>(i)] = after;
    if (after < size) {
      previous[static_cast<size_t>(after)] = i;
      look_at(i, after);
    }
    if (const int32_t before = previous[static_cast<size_t>(i)]; before >= 0) look_at(before, i);
  }
  const auto first = tokens.begin() + static_cast<int64_t>(begin);
  tokens.erase(std::remove(first, tokens.end(), -1), tokens.end());
}

}  // namespace medusa
