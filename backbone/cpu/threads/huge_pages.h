// Memory for weights that every step reads, in large pages where the system gives them on request.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace medusa {

/// [bytes] uint8, zeros, 64-byte aligned. Tensors made one after the other lie side by side, in
/// regions of at least 32 MB of which each lives as long as one of its tensors: a page of 2 MB
/// holds several weights. With pages of 4 KB a step spends a fifth of its time on finding them, in
/// a virtual machine more (docs/design-notes/quantized-steps.md).
///
/// Thread safety: may be called from any thread.
/// @throws std::bad_alloc  the system has no memory left to promise.
at::Tensor huge_page_bytes(int64_t bytes);

}  // namespace medusa
