#include "backbone/cuda/device_pass.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/check.h"

namespace medusa {
namespace {

/// Bit i: the row sees cache row start + i.
uint64_t path_bits(const ForwardPlan& plan, const BatchToken& row) {
  uint64_t bits = 0;
  for (const int64_t at : plan.path(row)) {
    const int64_t i = at - row.start;
    MEDUSA_ASSERT(i >= 0 && i < 64, at, row.start);
    bits |= uint64_t{1} << i;
  }
  return bits;
}

}  // namespace

at::Tensor tiles_of(std::span<const int32_t> slots, int32_t tile_rows) {
  std::vector<int32_t> tiles;
  const auto n = static_cast<int32_t>(slots.size());
  for (int32_t first = 0, end = 0; first < n; first = end) {
    const auto slot = [&](int32_t i) { return slots[static_cast<size_t>(i)]; };
    while (end < n && slot(end) == slot(first) && end - first < tile_rows) ++end;
    tiles.push_back(first);
    tiles.push_back(end - first);
  }
  return at::tensor(tiles, at::kInt).view({-1, 2});
}

UploadedPlan::UploadedPlan(const ForwardPlan& plan, int32_t tile_rows, at::Device device) {
  const auto n = static_cast<size_t>(plan.size());
  constexpr size_t kFields = 5;
  std::vector<int32_t> elements(kFields * n), slots;
  std::vector<int64_t> paths(n);
  for (size_t i = 0; i < n; ++i) {
    const BatchToken& row = plan.rows[i];
    // Of a row on a contiguous path all before it counts as committed: it may be longer than 64.
    const int64_t fields[kFields] = {row.token, row.slot, row.contiguous ? row.position : row.start,
                                     row.position, row.cache_row};
    for (size_t f = 0; f < kFields; ++f) elements[f * n + i] = static_cast<int32_t>(fields[f]);
    paths[i] = row.contiguous ? 1 : static_cast<int64_t>(path_bits(plan, row));
    slots.push_back(row.slot);
    pass_.max_context = std::max(pass_.max_context, row.position);
  }
  elements_ = at::tensor(elements, at::kInt).to(device);
  paths_ = at::tensor(paths, at::kLong).to(device);
  tiles_ = tiles_of(slots, tile_rows).to(device);
  const auto* from = static_cast<const int32_t*>(elements_.data_ptr());
  pass_.rows = {from,
                from + n,
                from + 2 * n,
                from + 3 * n,
                from + 4 * n,
                static_cast<const uint64_t*>(paths_.data_ptr()),
                static_cast<int32_t>(n)};
  pass_.tiles = static_cast<const DeviceTile*>(tiles_.data_ptr());
  pass_.num_tiles = static_cast<int32_t>(tiles_.size(0));
}

DeviceCache device_view(const KvCache& cache) {
  const at::Tensor keys = cache.keys();
  MEDUSA_ASSERT(cache.layout() == KvLayout::Rows && keys.scalar_type() == at::kBFloat16);
  return {static_cast<Bf16*>(keys.data_ptr()),
          static_cast<Bf16*>(cache.values().data_ptr()),
          keys.size(0),
          keys.size(1),
          keys.size(2),
          keys.size(3),
          keys.size(4)};
}

}  // namespace medusa
