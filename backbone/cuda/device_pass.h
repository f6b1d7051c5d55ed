// The rows of a pass as the device's kernels read them, from a plan of the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

#include "backbone/cuda/device_runtime.h"
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

/// A plan of few rows in a place on the device that never moves, as captured passes read it.
class PlacedPlan {
 public:
  static constexpr int64_t kMostRows = 64;

  PlacedPlan(DeviceRuntime& runtime, int32_t tile_rows, at::Device device);

  /// Sends a plan behind all work that was started before. What was sent before is overwritten.
  /// @returns  its max_context is that of the plan.
  DevicePass send(const ForwardPlan& plan);

 private:
  int32_t tile_rows_;
  std::unique_ptr<UploadBuffer> host_;
  at::Tensor device_;  // as many bytes
};

/// The tiles of rows whose slots are these: [T, 2] int32 on the CPU, first row and count.
at::Tensor tiles_of(std::span<const int32_t> slots, int32_t tile_rows);

/// @param cache  of whole slots in KvLayout::Rows, bfloat16.
DeviceCache device_view(const KvCache& cache);

}  // namespace medusa
