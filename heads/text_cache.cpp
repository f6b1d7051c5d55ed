#include "heads/text_cache.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace medusa {

void TextCache::reserve(int64_t rows) {
  if (rows <= cache_.capacity()) return;
  KvCache larger = make_(std::max(rows, cache_.capacity() * 3 / 2));
  const int32_t slot = larger.open();
  larger.take_rows(slot, cache_, slot_);
  cache_ = std::move(larger);
  slot_ = slot;
}

void TextCache::commit(int64_t num_rows) {
  std::vector<int32_t> all(static_cast<size_t>(num_rows));
  std::iota(all.begin(), all.end(), 0);
  cache_.commit(slot_, all);
}

}  // namespace medusa
