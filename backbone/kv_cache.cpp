#include "backbone/kv_cache.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "backbone/cpu/layout/kv_tiles.h"
#include "base/check.h"

namespace medusa {
namespace {

constexpr int64_t kCapacityUnit = 32;  // rows: whole tiles in either layout

int64_t whole_units(int64_t rows) {
  return (rows + kCapacityUnit - 1) / kCapacityUnit * kCapacityUnit;
}

}  // namespace

KvCache::KvCache(const ModelConfig& config, int32_t num_slots, int64_t capacity,
                 at::ScalarType dtype, at::Device device, KvLayout layout)
    : num_layers_(config.num_layers),
      num_kv_heads_(config.num_kv_heads),
      head_size_(config.head_size),
      capacity_(whole_units(capacity)),
      layout_(layout),
      lengths_(static_cast<size_t>(num_slots), 0),
      used_(static_cast<size_t>(num_slots), false) {
  MEDUSA_ASSERT(layout == KvLayout::Rows || (dtype == at::kBFloat16 && device.is_cpu()));
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  const std::vector<int64_t> sizes{num_layers_, num_slots, num_kv_heads_, capacity_, head_size_};
  keys_ = at::zeros(sizes, options);  // zeros: kernels may read rows past the end, times zero
  values_ = at::zeros(sizes, options);
}

int32_t KvCache::open() {
  const auto free = std::find(used_.begin(), used_.end(), false);
  MEDUSA_ASSERT(free != used_.end(), used_.size());
  const auto slot = static_cast<int32_t>(free - used_.begin());
  used_[static_cast<size_t>(slot)] = true;
  lengths_[static_cast<size_t>(slot)] = 0;
  return slot;
}

void KvCache::close(int32_t slot) {
  MEDUSA_ASSERT(used_.at(static_cast<size_t>(slot)), slot);
  used_[static_cast<size_t>(slot)] = false;
  lengths_[static_cast<size_t>(slot)] = 0;
}

int32_t KvCache::num_free() const {
  return static_cast<int32_t>(std::count(used_.begin(), used_.end(), false));
}

void KvCache::commit(int32_t slot, std::span<const int32_t> rows) {
  const int64_t start = length(slot);
  int64_t to = start, least = start;
  for (const int32_t row : rows) {
    const int64_t from = start + row;
    MEDUSA_ASSERT(from >= least && from < capacity_, from, least, capacity_);
    if (from != to)
      move_row(slot, from, to);  // ascending rows: what is overwritten was read before
    ++to;
    least = from + 1;
  }
  lengths_[static_cast<size_t>(slot)] = to;
}

void KvCache::copy_prefix(int32_t from, int32_t to, int64_t rows) {
  MEDUSA_ASSERT(from != to && rows <= length(from) && length(to) == 0, from, to, rows,
                length(from));
  // In both layouts the first rows of a block, up to a multiple of 16, are its first bytes.
  const int64_t whole = (rows + 15) / 16 * 16;
  for (at::Tensor* side : {&keys_, &values_})
    side->select(1, to).narrow(2, 0, whole).copy_(side->select(1, from).narrow(2, 0, whole));
  lengths_[static_cast<size_t>(to)] = rows;
}

void KvCache::reserve(int64_t capacity) {
  if (capacity <= capacity_) return;
  const int64_t grown = whole_units(std::max(capacity, capacity_ + capacity_ / 2));
  for (at::Tensor* side : {&keys_, &values_}) {
    std::vector<int64_t> sizes = side->sizes().vec();
    sizes[3] = grown;
    const at::Tensor wider = at::zeros(sizes, side->options());
    // In both layouts the rows of a block are its first bytes.
    wider.narrow(3, 0, capacity_).copy_(*side);
    *side = wider;
  }
  capacity_ = grown;
}

void KvCache::rewind(int32_t slot, int64_t length) {
  MEDUSA_ASSERT(length >= 0 && length <= this->length(slot), length, this->length(slot));
  lengths_[static_cast<size_t>(slot)] = length;
}

int64_t KvCache::bytes() const { return static_cast<int64_t>(keys_.nbytes() + values_.nbytes()); }

void KvCache::move_row(int32_t slot, int64_t from, int64_t to) {
  if (layout_ == KvLayout::Rows) {
    for (at::Tensor* side : {&keys_, &values_}) {
      const at::Tensor rows = side->select(1, slot);  // [L, G, capacity, D]
      rows.select(2, to).copy_(rows.select(2, from));
    }
    return;
  }
  const int64_t block = capacity_ * head_size_;  // elements of one (layer, slot, key/value head)
  auto* keys = static_cast<uint16_t*>(keys_.data_ptr());
  auto* values = static_cast<uint16_t*>(values_.data_ptr());
  for (int64_t layer = 0; layer < num_layers_; ++layer)
    for (int64_t head = 0; head < num_kv_heads_; ++head) {
      const int64_t at = ((layer * num_slots() + slot) * num_kv_heads_ + head) * block;
      move_tile_row(keys + at, values + at, capacity_, head_size_, from, to);
    }
}

}  // namespace medusa
