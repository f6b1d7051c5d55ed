// A layer's kernels in tests, and what they are handed.
#pragma once

#include <ATen/ATen.h>

#include <ostream>
#include <vector>

#include "backbone/cuda/device_tensors.h"
#include "tests/cuda/emulated_kernels.h"
#include "tests/cuda/table_test.h"

namespace medusa {

using KernelChoice = TableChoice<LayerKernels>;
inline void PrintTo(const KernelChoice& choice, std::ostream* out) { *out << choice.name; }

class LayerKernelTest : public TableTest<LayerKernels> {
 protected:
  at::Tensor to_device(const at::Tensor& x) const {
    return x.to(device(), /*non_blocking=*/false, /*copy=*/true).contiguous();
  }
};

inline auto kernel_choices() {
  return table_choices<LayerKernels>(emulated_layer_kernels, cuda_layer_kernels);
}

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == at::kBFloat16 ? at::equal(a.view(at::kShort), b.view(at::kShort))
                                          : at::equal(a.view(at::kInt), b.view(at::kInt));
}

/// Rows of a pass on a device.
struct RowSpec {
  int32_t token = 0, slot = 0, start = 0, position = 0, cache_row = 0;
  uint64_t path = 1;
};

class DeviceRowsOf {
 public:
  DeviceRowsOf(const std::vector<RowSpec>& rows, at::Device device) {
    const auto column = [&](auto member, at::ScalarType type) {
      at::Tensor values = at::empty({static_cast<int64_t>(rows.size())}, at::kLong);
      for (size_t i = 0; i < rows.size(); ++i)
        values.data_ptr<int64_t>()[i] = static_cast<int64_t>(rows[i].*member);
      return values.to(type).to(device);
    };
    columns_ = {column(&RowSpec::token, at::kInt),     column(&RowSpec::slot, at::kInt),
                column(&RowSpec::start, at::kInt),     column(&RowSpec::position, at::kInt),
                column(&RowSpec::cache_row, at::kInt), column(&RowSpec::path, at::kLong)};
  }
  DeviceRows view() const {
    return {.tokens = elements<int32_t>(columns_[0]),
            .slots = elements<int32_t>(columns_[1]),
            .starts = elements<int32_t>(columns_[2]),
            .positions = elements<int32_t>(columns_[3]),
            .cache_rows = elements<int32_t>(columns_[4]),
            .paths = elements<uint64_t>(columns_[5]),
            .count = static_cast<int32_t>(columns_[0].size(0))};
  }

 private:
  std::vector<at::Tensor> columns_;
};

/// @param keys, values  [L, S, G, capacity, D] on the device.
inline DeviceCache cache_view(const at::Tensor& keys, const at::Tensor& values) {
  return {.keys = elements<Bf16>(keys),
          .values = elements<Bf16>(values),
          .num_layers = keys.size(0),
          .num_slots = keys.size(1),
          .num_kv_heads = keys.size(2),
          .capacity = keys.size(3),
          .head_size = keys.size(4)};
}

}  // namespace medusa
