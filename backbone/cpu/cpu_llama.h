// The whole forward pass of a Llama on a CPU, with bfloat16 or quantized weights: one parallel
// region per pass, the small steps between GEMMs fused into them.
#pragma once

#include <memory>

#include "backbone/llama_backend.h"

namespace medusa {

struct CpuKernels;

/// Whether this dtype and these sizes are the ones that it is written for, bfloat16 on the CPU,
/// hidden and head size multiples of 32, and this machine runs the ISA.
bool cpu_llama_supports(const Weights& non_layer, CpuIsa isa);

/// Keys and values are bfloat16, weights too or quantized; sums and the residual stream float32. A
/// row's results are the same bits for any number of threads, too. AVX2 gives the bits of AVX-512,
/// other ISAs the same within rounding. For the stage timer RoPE and cache write are part of Qkv,
/// the activation of GateUp.
///
/// Each layer is packed when it is added; of `non_layer` the embedding is kept (not a copy).
std::unique_ptr<LlamaBackend> make_cpu_llama(const Weights& non_layer,
                                             const ExecutionContext& execution);

/// @param kernels  that run here, for weights as `non_layer` has them; live as long as the backend.
std::unique_ptr<LlamaBackend> make_cpu_llama(const Weights& non_layer, const CpuKernels& kernels,
                                             std::shared_ptr<ThreadPool> pool);

}  // namespace medusa
