#include "backbone/llama_backend.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "backbone/cpu/cpu_llama.h"
#include "backbone/cuda/cuda_llama.h"
#include "backbone/reference_llama.h"
#include "base/error.h"

namespace medusa {

std::optional<int64_t> Features::place_of(int64_t layer) const {
  const auto found = std::find(layers.begin(), layers.end(), layer);
  if (found == layers.end()) return std::nullopt;
  return found - layers.begin();
}

void Features::take(int64_t layer, const at::Tensor& x) {
  const auto place = place_of(layer);
  if (!place) return;
  if (!values.defined())
    values = at::empty({std::ssize(rows), std::ssize(layers), x.size(1)}, x.options());
  const at::Tensor index = at::tensor(rows, at::kInt).to(x.device());
  values.select(1, *place).copy_(x.index_select(0, index));
}

std::unique_ptr<LlamaBackend> make_llama_backend(const Weights& non_layer,
                                                 const ExecutionContext& execution) {
  if (execution.kernels() == Kernels::Reference) return make_reference_llama(non_layer, execution);
  if (cpu_llama_supports(non_layer, execution.isa())) return make_cpu_llama(non_layer, execution);
  const at::Device device = non_layer.embedding.device();
  if (device.is_cuda() && CudaLlama::supports(non_layer, cuda_kernels()))
    return std::make_unique<CudaLlama>(non_layer, cuda_kernels());
  if (non_layer.kind != QuantKind::None && !device.is_cpu())
    throw UserError(fmt::format(
        "backbone.dtype is '{}', found a model with heads of {} numbers, {} to a key/value head, "
        "expected sizes that our kernels multiply on a GPU (docs/guide/gpu.md); use --dtype "
        "bfloat16",
        non_layer.kind == QuantKind::Int8 ? "int8" : "stored", non_layer.config.head_size,
        non_layer.config.num_heads / non_layer.config.num_kv_heads));
  return make_reference_llama(non_layer, execution);
}

}  // namespace medusa
