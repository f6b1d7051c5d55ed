// The rows of a pass as the device's kernels read them, from a plan of the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "backbone/cuda/device_types.h"
#include "backbone/cuda/layer_kernels.h"
#include "backbone/forward_plan.h"
#include "backbone/kv_cache.h"

namespace medusa {

/// What a pass needs of its rows, all on the device.
struct DevicePass {
  DeviceRows rows;
  const DeviceTile* tiles = nullptr;  // [num_tiles]
  int32_t num_tiles = 0;
  int64_t max_context = 0;  // no row's position is larger
};

/// A plan on the device. Keeps what the pass points to.
class UploadedPlan {
 public:
  /// @param tile_rows  LayerKernels::tile_rows().
  UploadedPlan(const ForwardPlan& plan, int32_t tile_rows, at::Device device);
  const DevicePass& pass() const { return pass_; }

 private:
  at::Tensor elements_, paths_, tiles_;
  DevicePass pass_;
};

/// The tiles of rows whose slots are these: [T, 2] int32 on the CPU, first row and count.
at::Tensor tiles_of(std::span<const int32_t> slots, int32_t tile_rows);

/// @param cache  of whole slots in KvLayout::Rows, bfloat16.
DeviceCache device_view(const KvCache& cache);

}  // namespace medusa
