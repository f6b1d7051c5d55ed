// The heads on a CPU, with weights in bfloat16 or, beside a quantized backbone, quantized: one
// parallel region per call, the small steps between GEMMs fused into them.
#pragma once

#include <cstdint>
#include <memory>

#include "heads/heads_backend.h"

namespace medusa {

struct CpuKernels;

/// Says whether this dtype and hidden size are the ones that it is written for, bfloat16 on the CPU
/// and a multiple of 32, and this machine runs the ISA.
bool cpu_heads_support(const Weights& backbone, CpuIsa isa);

/// Positions that share state and root share what the first layer makes of them. A position's
/// drafts of one head are the same bits for any number of threads, too; not the same on another
/// kind of processor. draft() allocates nothing once the largest number of positions was seen.
std::unique_ptr<HeadsBackend> make_cpu_heads(const MedusaHeads& heads, const Weights& backbone,
                                             int64_t top_k, const ExecutionContext& execution);

/// @param kernels  for weights as the backbone keeps its own; live as long as the backend.
std::unique_ptr<HeadsBackend> make_cpu_heads(const MedusaHeads& heads, const Weights& backbone,
                                             int64_t top_k, const CpuKernels& kernels,
                                             std::shared_ptr<ThreadPool> pool);

}  // namespace medusa
