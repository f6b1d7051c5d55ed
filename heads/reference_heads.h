// The heads in LibTorch's ops, for any dtype and device: what other backends are tested against.
#pragma once

#include <cstdint>
#include <memory>

#include "heads/heads_backend.h"

namespace medusa {

/// Products give float32 (backbone/linear.h), and beside a backbone in blocks their weights are in
/// blocks, too. In bfloat16 numbers are rounded in four places: scaled embeddings (exactly: the
/// gain is a power of two), what a layer's second product multiplies, the state after each layer,
/// once, and what a low-rank output's first factor gives. States may come from another device, in
/// another dtype.
/// @param execution  of the products.
std::unique_ptr<HeadsBackend> make_reference_heads(const MedusaHeads& heads,
                                                   const Weights& backbone, int64_t top_k,
                                                   const ExecutionContext& execution);

}  // namespace medusa
