#include "heads/heads_backend.h"

#include "heads/cpu/cpu_heads.h"
#include "heads/reference_heads.h"

namespace medusa {

std::unique_ptr<HeadsBackend> make_heads_backend(const MedusaHeads& heads, const Weights& backbone,
                                                 int64_t top_k, const ExecutionContext& execution) {
  if (execution.kernels() == Kernels::Auto && cpu_heads_support(backbone, execution.isa()))
    return make_cpu_heads(heads, backbone, top_k, execution);
  return make_reference_heads(heads, backbone, top_k, execution);
}

}  // namespace medusa
