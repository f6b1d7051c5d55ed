// The heads in LibTorch's ops, for any dtype and device: what other backends are tested against.
#pragma once

#include <cstdint>
#include <memory>

#include "heads/heads_backend.h"

namespace medusa {

/// GEMMs give float32 (backbone/linear.h), and beside a quantized backbone their weights are
/// quantized, too. In bfloat16 elements are rounded in five places: scaled embeddings (exactly: the
/// gain is a power of two), what a layer's second GEMM multiplies, the state after each layer,
/// once, what a low-rank output's first factor gives, and a correction's rows. States may come from
/// another device, in another dtype.
/// @param execution  of the GEMMs.
std::unique_ptr<HeadsBackend> make_reference_heads(const MedusaHeads& heads,
                                                   const Weights& backbone, int64_t top_k,
                                                   const ExecutionContext& execution);

}  // namespace medusa
