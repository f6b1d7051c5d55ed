// What the processor and the kernel let us use, asked once per process.
#pragma once

namespace medusa {

/// AMX bfloat16 tiles and the AVX-512 instructions (F, BW, VL, DQ, BF16) that our kernels use, and
/// the kernel's permission for this process to touch tile registers.
/// Thread safety: yes. The first call asks the kernel; threads started later inherit the answer.
bool has_tile_kernels();

}  // namespace medusa
