// The keys and values of one text, in a cache that grows with it: of layers that stand beside the
// backbone (prefix_model.h, eagle3/eagle3_model.h).
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "backbone/kv_cache.h"

namespace medusa {

/// Thread safety: none.
class TextCache {
 public:
  using MakeCache = std::function<KvCache(int64_t rows)>;

  /// @param make  a cache of one slot with so many rows.
  TextCache(MakeCache make, int64_t first_rows)
      : make_(std::move(make)), cache_(make_(first_rows)), slot_(cache_.open()) {}

  /// Makes room for so many rows, committed and tentative; tentative ones may be lost.
  void reserve(int64_t rows);

  /// Keeps the rows of the last pass.
  void commit(int64_t num_rows);

  /// Forgets committed rows from length on.
  void rewind(int64_t length) { cache_.rewind(slot_, length); }

  KvCache& cache() { return cache_; }
  int32_t slot() const { return slot_; }
  int64_t length() const { return cache_.length(slot_); }  // committed rows

 private:
  MakeCache make_;
  KvCache cache_;
  int32_t slot_;
};

}  // namespace medusa
