#include "backbone/cuda/device_gemm.h"

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

void DeviceGemm::operator()(const NormedRows& x, int64_t num_rows, float* scratch, float* y,
                            DeviceStream stream) const {
  SkinnyGemmArgs args;
  args.x = x;
  args.y = y;
  run(args, num_rows, scratch, stream);
}

void DeviceGemm::add(const NormedRows& x, int64_t num_rows, float* scratch, float* y,
                     DeviceStream stream, const NormBehind& behind) const {
  SkinnyGemmArgs args;
  args.end = GemmEnd::Add;
  args.behind = behind;
  args.x = x;
  args.y = y;
  run(args, num_rows, scratch, stream);
}

bool DeviceGemm::has_rope_and_cache(const RopeAndCacheArgs& place) const {
  SkinnyGemmArgs args;
  args.weight = weight_.view();
  args.end = GemmEnd::RopeAndCache;
  args.place = place;
  return kernels_->can_end(args);
}

void DeviceGemm::rope_and_cache(const NormedRows& x, int64_t num_rows, float* scratch,
                                const RopeAndCacheArgs& place, DeviceStream stream) const {
  MEDUSA_ASSERT(has_rope_and_cache(place) && place.rows.count == num_rows);
  MEDUSA_ASSERT((place.num_heads + 2 * place.cache.num_kv_heads) * place.cache.head_size ==
                num_outputs());
  SkinnyGemmArgs args;
  args.end = GemmEnd::RopeAndCache;
  args.x = x;
  args.place = place;
  run(args, num_rows, scratch, stream);
}

bool DeviceGemm::has_silu_mul() const {
  SkinnyGemmArgs args;
  args.weight = weight_.view();
  args.end = GemmEnd::SiluMul;
  return kernels_->can_end(args);
}

void DeviceGemm::silu_mul(const NormedRows& x, int64_t num_rows, float* scratch, Bf16* out,
                          DeviceStream stream) const {
  MEDUSA_ASSERT(has_silu_mul());
  SkinnyGemmArgs args;
  args.end = GemmEnd::SiluMul;
  args.x = x;
  args.out = out;
  run(args, num_rows, scratch, stream);
}

/// @param args  without what is the same for all ends.
void DeviceGemm::run(SkinnyGemmArgs args, int64_t num_rows, float* scratch,
                     DeviceStream stream) const {
  args.weight = weight_.view();
  args.num_rows = num_rows;
  args.scratch = scratch;
  const auto is_aligned = [](const void* at) { return reinterpret_cast<uintptr_t>(at) % 16 == 0; };
  MEDUSA_ASSERT(is_aligned(args.weight.elements) && is_aligned(args.x.x) && is_aligned(args.y) &&
                is_aligned(args.out));
  const bool has_norms = args.x.squares != nullptr || args.behind.weight != nullptr;
  MEDUSA_ASSERT(!has_norms || folds_norm());
  kernels_->skinny(args, stream);
}

}  // namespace medusa
