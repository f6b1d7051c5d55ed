#include "backbone/cuda/device_pass.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "backbone/cuda/device_tensors.h"
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

std::vector<DeviceTile> tiles_between(std::span<const int32_t> slots, int32_t tile_rows) {
  std::vector<DeviceTile> tiles;
  const auto n = static_cast<int32_t>(slots.size());
  for (int32_t first = 0, end = 0; first < n; first = end) {
    const auto slot = [&](int32_t i) { return slots[static_cast<size_t>(i)]; };
    while (end < n && slot(end) == slot(first) && end - first < tile_rows) ++end;
    tiles.push_back({first, end - first});
  }
  return tiles;
}

constexpr size_t kFields = 5;  // of a row, in the order of DeviceRows

/// @param stride  from one field to the next.
/// @returns       the largest position.
int64_t write_rows(const ForwardPlan& plan, size_t stride, int32_t* fields, uint64_t* paths) {
  int64_t max_context = 0;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const BatchToken& row = plan.rows[i];
    // Of a row on a contiguous path all before it counts as committed: it may be longer than 64.
    const int64_t values[kFields] = {row.token, row.slot, row.contiguous ? row.position : row.start,
                                     row.position, row.cache_row};
    for (size_t f = 0; f < kFields; ++f) fields[f * stride + i] = static_cast<int32_t>(values[f]);
    paths[i] = row.contiguous ? 1 : path_bits(plan, row);
    max_context = std::max(max_context, row.position);
  }
  return max_context;
}

DeviceRows rows_at(const int32_t* fields, size_t stride, const uint64_t* paths, int64_t count) {
  return {fields,
          fields + stride,
          fields + 2 * stride,
          fields + 3 * stride,
          fields + 4 * stride,
          paths,
          static_cast<int32_t>(count)};
}

std::vector<int32_t> slots_of(const ForwardPlan& plan) {
  std::vector<int32_t> slots;
  for (const BatchToken& row : plan.rows) slots.push_back(row.slot);
  return slots;
}

/// What a PlacedPlan sends.
struct PlanBytes {
  static constexpr size_t kRows = PlacedPlan::kMostRows;
  uint64_t paths[kRows];
  int32_t fields[kFields * kRows];
  DeviceTile tiles[kRows];
};

}  // namespace

at::Tensor tiles_of(std::span<const int32_t> slots, int32_t tile_rows) {
  std::vector<int32_t> words;
  for (const DeviceTile& each : tiles_between(slots, tile_rows))
    words.insert(words.end(), {each.first, each.count});
  return at::tensor(words, at::kInt).view({-1, 2});
}

UploadedPlan::UploadedPlan(const ForwardPlan& plan, int32_t tile_rows, at::Device device) {
  const auto n = static_cast<size_t>(plan.size());
  std::vector<int32_t> fields(kFields * n);
  std::vector<uint64_t> paths(n);
  pass_.max_context = write_rows(plan, n, fields.data(), paths.data());
  elements_ = at::tensor(fields, at::kInt).to(device);
  paths_ = at::tensor(std::vector<int64_t>(paths.begin(), paths.end()), at::kLong).to(device);
  tiles_ = tiles_of(slots_of(plan), tile_rows).to(device);
  pass_.rows = rows_at(elements<int32_t>(elements_), n, elements<uint64_t>(paths_), plan.size());
  pass_.tiles = elements<DeviceTile>(tiles_);
  pass_.num_tiles = static_cast<int32_t>(tiles_.size(0));
}

PlacedPlan::PlacedPlan(DeviceRuntime& runtime, int32_t tile_rows, at::Device device)
    : tile_rows_(tile_rows),
      host_(runtime.make_upload_buffer(sizeof(PlanBytes))),
      device_(at::zeros({int64_t{sizeof(PlanBytes)}},
                        at::TensorOptions().dtype(at::kByte).device(device))) {}

DevicePass PlacedPlan::send(const ForwardPlan& plan) {
  MEDUSA_ASSERT(plan.size() <= kMostRows, plan.size());
  auto& bytes = *static_cast<PlanBytes*>(host_->data());
  const std::vector<DeviceTile> tiles = tiles_between(slots_of(plan), tile_rows_);
  std::copy(tiles.begin(), tiles.end(), bytes.tiles);
  DevicePass pass;
  pass.max_context = write_rows(plan, PlanBytes::kRows, bytes.fields, bytes.paths);
  auto& there = *static_cast<PlanBytes*>(device_.data_ptr());
  host_->send(&there);
  pass.rows = rows_at(there.fields, PlanBytes::kRows, there.paths, plan.size());
  pass.tiles = there.tiles;
  pass.num_tiles = static_cast<int32_t>(tiles.size());
  return pass;
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
