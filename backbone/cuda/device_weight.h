// Weights as GemmKernels read them, from those that were loaded.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "backbone/cuda/gemm_kernels.h"
#include "backbone/quantized_matrix.h"

namespace medusa {

/// A weight's elements, on the device where its GEMMs run.
struct StoredDeviceWeight {
  DeviceFormat format = DeviceFormat::Bf16;
  at::Tensor elements{};   // [n, k] bfloat16 or int8, or [n, k / 2] uint8
  at::Tensor scales{};     // [n, k / 32] half; undefined for bfloat16
  at::Tensor mins{};       // the same; undefined without mins
  int64_t num_inputs = 0;  // k

  int64_t num_outputs() const { return elements.size(0); }

  /// Valid as long as the tensors.
  DeviceWeight view() const;
};

/// @param weight  [n, k] of any floating dtype; bfloat16 on the device already: shared, not copied.
/// @returns       nothing if k is not a multiple of 32.
std::optional<StoredDeviceWeight> device_weight(const at::Tensor& weight, at::Device device);

/// The same elements, exactly.
/// @returns  nothing if GEMMs have no format for it: k is not a multiple of 32, 16 elements share
///           a scale, or quants of 8 bits with mins that half precision cannot move by 128.
std::optional<StoredDeviceWeight> device_weight(const QuantizedMatrix& weight, at::Device device);

}  // namespace medusa
