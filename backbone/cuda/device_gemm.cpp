#include "backbone/cuda/device_gemm.h"

#include <algorithm>
#include <utility>

#include "backbone/files/tensor_check.h"
#include "base/check.h"

namespace medusa {

DeviceGemm::DeviceGemm(const GemmKernels& kernels, StoredDeviceWeight weight)
    : kernels_(&kernels), weight_(std::move(weight)) {}

int64_t DeviceGemm::bytes() const {
  int64_t sum = 0;
  for (const at::Tensor* each : {&weight_.elements, &weight_.scales, &weight_.mins})
    if (each->defined()) sum += static_cast<int64_t>(each->nbytes());
  return sum;
}

int64_t DeviceGemm::scratch() const { return kernels_->scratch(weight_.view()); }

void DeviceGemm::operator()(const at::Tensor& x, float* scratch, const at::Tensor& y,
                            DeviceStream stream) const {
  check_shape(x, "x", {-1, num_inputs()});
  check_shape(y, "y", {x.size(0), num_outputs()});
  MEDUSA_ASSERT(x.scalar_type() == at::kBFloat16 && x.is_contiguous());
  MEDUSA_ASSERT(y.scalar_type() == at::kFloat && y.is_contiguous());
  MEDUSA_ASSERT(x.device() == weight_.elements.device() && y.device() == x.device());
  (*this)(static_cast<const Bf16*>(x.const_data_ptr()), x.size(0), scratch, y.data_ptr<float>(),
          stream);
}

void DeviceGemm::operator()(const Bf16* x, int64_t num_rows, float* scratch, float* y,
                            DeviceStream stream) const {
  SkinnyGemmArgs args{.weight = weight_.view(), .scratch = scratch};
  for (int64_t first = 0; first < num_rows; first += kMostGemmRows) {
    args.x = x + first * num_inputs();
    args.num_rows = std::min(kMostGemmRows, num_rows - first);
    args.y = y + first * num_outputs();
    kernels_->skinny(args, stream);
  }
}

}  // namespace medusa
