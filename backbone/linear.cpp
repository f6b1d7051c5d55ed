#include "backbone/linear.h"

#include <ATen/ops/linear.h>

#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cpu/layout/tile_linear.h"

namespace medusa {

Linear::Linear(const at::Tensor& weight, const ExecutionContext& execution) {
  const CpuKernels* tiles = execution.kernels() == Kernels::Auto && weight.is_cpu() &&
                                    weight.scalar_type() == at::kBFloat16
                                ? kernels_for(execution.isa(), /*quantized=*/false)
                                : nullptr;
  if (tiles != nullptr)
    packed_ = std::make_shared<const TileLinear>(weight, *tiles, execution.pool());
  else
    weight_ = weight;
}

Linear::Linear(const QuantizedMatrix& weight, const ExecutionContext& execution)
    : rounds_rows_(true) {
  const CpuKernels* tiles = execution.kernels() == Kernels::Auto && weight.quants.is_cpu()
                                ? kernels_for(execution.isa(), /*quantized=*/true)
                                : nullptr;
  if (tiles != nullptr)
    packed_ = std::make_shared<const TileLinear>(weight, *tiles, execution.pool());
  else
    weight_ = dequantize_matrix(weight);
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  if (packed_ && rounds_rows_) return (*packed_)(x.to(at::kBFloat16));
  if (rounds_rows_) return at::linear(round_to_quantized(x.to(at::kFloat)), weight_);
  return packed_ ? (*packed_)(x) : at::linear(x, weight_).to(at::kFloat);
}

const char* Linear::kernels() const { return packed_ ? packed_->kernels() : "LibTorch"; }

}  // namespace medusa
