// Trees over committed rows in a cache that holds NaN wherever no row may look.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "backbone/attention.h"
#include "tests/backbone/normal_tensor.h"
#include "tests/backbone/tiny_model.h"
#include "tests/cuda/layer_kernel_choices.h"

namespace medusa {

struct HeadShape {
  int64_t heads = 0, groups = 0, size = 0;
};

/// A tree over the committed rows of a slot.
struct SlotTree {
  int32_t slot = 0, start = 0;
  std::vector<int32_t> parents;  // of every node but the root, which is the first
};

/// The parents of a random tree.
/// @param spread  1: a chain; the larger, the more branches.
inline std::vector<int32_t> random_parents(int32_t nodes, int32_t spread, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> parents{-1};
  for (int32_t i = 1; i < nodes; ++i) {
    const int32_t back = static_cast<int32_t>(random() % static_cast<uint64_t>(spread)) + 1;
    parents.push_back(std::max(i - back, 0));
  }
  return parents;
}

inline std::vector<RowSpec> rows_of(const std::vector<SlotTree>& trees) {
  std::vector<RowSpec> rows;
  for (const SlotTree& tree : trees) {
    const size_t first = rows.size();
    for (size_t i = 0; i < tree.parents.size(); ++i) {
      RowSpec row{.slot = tree.slot,
                  .start = tree.start,
                  .position = tree.start,
                  .cache_row = tree.start + static_cast<int32_t>(i),
                  .path = uint64_t{1} << i};
      if (tree.parents[i] >= 0) {
        const RowSpec& parent = rows[first + static_cast<size_t>(tree.parents[i])];
        row.path |= parent.path;
        row.position = parent.position + 1;
      }
      rows.push_back(row);
    }
  }
  return rows;
}

/// The nodes from the root to a row, as indices inside its tree.
inline std::vector<int32_t> nodes_of(const RowSpec& row) {
  std::vector<int32_t> nodes;
  for (int32_t i = 0; i < 64; ++i)
    if ((row.path >> i & 1) != 0) nodes.push_back(i);
  return nodes;
}

/// Neighbouring rows of a slot.
inline std::vector<DeviceTile> tiles_of(const std::vector<RowSpec>& rows, int32_t most) {
  std::vector<DeviceTile> tiles;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (tiles.empty() || tiles.back().count == most || rows[i - 1].slot != rows[i].slot)
      tiles.push_back({static_cast<int32_t>(i), 0});
    ++tiles.back().count;
  }
  return tiles;
}

/// How rows are run; what their bits must not depend on, but for the window.
struct AttentionRun {
  int64_t window = 0;
  int64_t more_context = 0;  // the grid is larger than the longest row asks for
  bool tiles_backwards = false;
  int32_t tile_rows = 0;  // 0: as many as the kernels take
};

class AttentionScene {
 public:
  static constexpr int64_t kLayers = 2, kLayer = 1, kSlots = 4;

  AttentionScene(const HeadShape& shape, const std::vector<SlotTree>& trees, uint64_t seed)
      : shape_(shape), rows_(rows_of(trees)) {
    int64_t capacity = 0;
    for (const RowSpec& row : rows_) capacity = std::max<int64_t>(capacity, row.cache_row + 1);
    const std::vector<int64_t> sizes{kLayers, kSlots, shape.groups, capacity, shape.size};
    const float nan = std::numeric_limits<float>::quiet_NaN();
    keys_ = at::full(sizes, nan, at::kBFloat16);
    values_ = at::full(sizes, nan, at::kBFloat16);
    for (const SlotTree& tree : trees) {
      const int64_t length = tree.start + std::ssize(tree.parents);
      for (const at::Tensor* side : {&keys_, &values_})
        side->select(0, kLayer)
            .select(0, tree.slot)
            .narrow(1, 0, length)
            .copy_(fixtures::normal({shape.groups, length, shape.size}, ++seed));
    }
    query_ =
        fixtures::normal({std::ssize(rows_), shape.heads, shape.size}, seed + 1).to(at::kBFloat16);
  }

  const std::vector<RowSpec>& rows() const { return rows_; }
  const at::Tensor& keys() const { return keys_; }
  const at::Tensor& values() const { return values_; }
  const at::Tensor& query() const { return query_; }

  void sharpen(double factor) { query_ = query_ * factor; }

  /// The reference's results, [R, A D] float32.
  at::Tensor plain(int64_t window) const {
    ModelConfig config = tiny_config();
    config.num_layers = kLayers;
    config.num_heads = shape_.heads;
    config.num_kv_heads = shape_.groups;
    config.head_size = shape_.size;
    KvCache cache(config, kSlots, keys_.size(3), at::kBFloat16, at::kCPU, KvLayout::Rows,
                  {.whole_slots = true});
    for (int64_t slot = 0; slot < kSlots; ++slot) cache.open();
    cache.keys().narrow(3, 0, keys_.size(3)).copy_(keys_);
    cache.values().narrow(3, 0, keys_.size(3)).copy_(values_);
    ForwardPlan plan;
    for (const RowSpec& row : rows_) {
      BatchToken planned{.slot = row.slot,
                         .start = row.start,
                         .cache_row = row.cache_row,
                         .position = row.position,
                         .contiguous = false,
                         .path_begin = static_cast<int32_t>(plan.paths.size())};
      for (const int32_t node : nodes_of(row)) plan.paths.push_back(row.start + node);
      planned.path_end = static_cast<int32_t>(plan.paths.size());
      plan.rows.push_back(planned);
    }
    return path_attention(plan, kLayer, query_.to(at::kFloat), cache, window);
  }

  /// [R, A D] bfloat16, of all rows.
  at::Tensor run(const KernelChoice& choice, const AttentionRun& how = {}) const {
    return run(choice, rows_, query_, keys_, values_, how);
  }

  /// Of other rows over another cache.
  at::Tensor run(const KernelChoice& choice, const std::vector<RowSpec>& rows,
                 const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                 const AttentionRun& how) const {
    const LayerKernels& kernels = *choice.table();
    const auto on_device = [&](const at::Tensor& x) {
      return x.to(choice.device, false, /*copy=*/true).contiguous();
    };
    const int32_t most = kernels.tile_rows(shape_.heads / shape_.groups);
    std::vector<DeviceTile> tiles = tiles_of(rows, how.tile_rows > 0 ? how.tile_rows : most);
    if (how.tiles_backwards) std::reverse(tiles.begin(), tiles.end());
    at::Tensor tile_table = at::empty({std::ssize(tiles), 2}, at::kInt);
    std::memcpy(tile_table.data_ptr(), tiles.data(), tiles.size() * sizeof(DeviceTile));
    tile_table = on_device(tile_table);

    int64_t max_context = 0;
    for (const RowSpec& row : rows) max_context = std::max<int64_t>(max_context, row.position);
    max_context += how.more_context;
    const int64_t n = std::ssize(rows),
                  floats = kernels.attention_scratch(n, shape_.heads, shape_.size, max_context);
    constexpr int64_t kGuard = 64;
    const at::Tensor scratch =
        on_device(at::full({floats + kGuard}, std::numeric_limits<float>::quiet_NaN()));
    const at::Tensor arrived = on_device(at::zeros({std::ssize(tiles), shape_.groups}, at::kInt));
    const at::Tensor q = on_device(query), k = on_device(keys), v = on_device(values);
    const at::Tensor out =
        on_device(at::full({n, shape_.heads * shape_.size}, 1e9F, at::kBFloat16));
    const DeviceRowsOf row_table(rows, choice.device);
    kernels.attend({.rows = row_table.view(),
                    .tiles = static_cast<const DeviceTile*>(tile_table.data_ptr()),
                    .num_tiles = static_cast<int32_t>(tiles.size()),
                    .tile_rows = most,
                    .query = elements<Bf16>(q),
                    .num_heads = shape_.heads,
                    .cache = cache_view(k, v),
                    .layer = kLayer,
                    .window = how.window,
                    .max_context = max_context,
                    .scratch = elements<float>(scratch),
                    .arrived = elements<int32_t>(arrived),
                    .out = elements<Bf16>(out)},
                   nullptr);
    EXPECT_TRUE(scratch.narrow(0, floats, kGuard).isnan().all().item<bool>())
        << "written behind the scratch";
    EXPECT_FALSE(arrived.any().item<bool>()) << "not ready for the next pass";
    return out.cpu();
  }

 private:
  HeadShape shape_;
  std::vector<RowSpec> rows_;
  at::Tensor keys_, values_;  // [L, S, G, capacity, D]
  at::Tensor query_;          // [R, A, D]
};

}  // namespace medusa
