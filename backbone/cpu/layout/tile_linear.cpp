#include "backbone/cpu/layout/tile_linear.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cpu/layout/quant_layout.h"
#include "backbone/cpu/threads/thread_pool.h"
#include "backbone/files/tensor_check.h"
#include "base/check.h"

namespace medusa {

TileLinear::TileLinear(const at::Tensor& weight, const CpuKernels& kernels,
                       std::shared_ptr<ThreadPool> pool)
    : kernels_(&kernels), pool_(std::move(pool)), weight_(weight) {}

TileLinear::TileLinear(const QuantizedMatrix& weight, const CpuKernels& kernels,
                       std::shared_ptr<ThreadPool> pool)
    : kernels_(&kernels), pool_(std::move(pool)), weight_(weight) {
  MEDUSA_ASSERT(kernels.quantize != nullptr, kernels.name);
}

at::Tensor TileLinear::operator()(const at::Tensor& x) const {
  check_shape(x, "x", {-1, weight_.num_inputs()});
  MEDUSA_ASSERT(x.scalar_type() == at::kBFloat16 && x.is_cpu());
  const at::Tensor rows = x.contiguous();
  const int64_t num_rows = x.size(0), k = weight_.num_inputs(), n = weight_.num_outputs();
  at::Tensor y = at::empty({num_rows, n}, at::kFloat);
  const at::Tensor tiled =
      at::empty({tiled_rows_size(num_rows, k) * kernels_->element_bytes}, at::kByte);
  kernels_->pack_rows(static_cast<const uint16_t*>(rows.const_data_ptr()), num_rows, k,
                      tiled.data_ptr());
  const TileWeightView weight = weight_.view();
  const int64_t depth = ceil_div(k, kTileDepth);
  at::Tensor row_blocks;
  if (kernels_->quantize != nullptr)
    row_blocks = at::empty({row_blocks_size(num_rows, depth)}, at::kByte);
  pool_->run([&](int thread) {
    const KernelRegion region(*kernels_);
    if (row_blocks.defined()) {
      kernels_->quantize(tiled.const_data_ptr(), depth,
                         share_of(num_rows * depth, thread, pool_->num_running()),
                         row_blocks.data_ptr());
      pool_->barrier();
    }
    kernels_->gemm(weight, (row_blocks.defined() ? row_blocks : tiled).const_data_ptr(), num_rows,
                   share_of(weight.num_pairs(), thread, pool_->num_running()),
                   static_cast<float*>(y.data_ptr()), n);
  });
  return y;
}

}  // namespace medusa
