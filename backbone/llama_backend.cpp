#include "backbone/llama_backend.h"

#include <fmt/format.h>

#include "backbone/cpu/cpu_llama.h"
#include "backbone/cuda/cuda_llama.h"
#include "backbone/reference_llama.h"
#include "base/error.h"

namespace medusa {

std::unique_ptr<LlamaBackend> make_llama_backend(const Weights& ends,
                                                 const ExecutionContext& execution) {
  if (execution.kernels() == Kernels::Plain) return make_reference_llama(ends, execution);
  if (cpu_llama_supports(ends, execution.isa())) return make_cpu_llama(ends, execution);
  const at::Device device = ends.embedding.device();
  if (device.is_cuda() && CudaLlama::supports(ends, cuda_kernels()))
    return std::make_unique<CudaLlama>(ends, cuda_kernels());
  if (ends.kind != BlockKind::None && !device.is_cpu())
    throw UserError(fmt::format(
        "backbone.dtype is '{}', found a model with heads of {} numbers, {} to a key/value head, "
        "expected sizes that our kernels multiply on a GPU (docs/guide/gpu.md); use --dtype "
        "bfloat16",
        ends.kind == BlockKind::Int8 ? "int8" : "stored", ends.config.head_size,
        ends.config.num_heads / ends.config.num_kv_heads));
  return make_reference_llama(ends, execution);
}

}  // namespace medusa
