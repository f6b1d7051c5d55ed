// What the processor and the operating system let us use, asked once per process.
#pragma once

namespace medusa {

/// The AVX-512 instructions (F, BW, VL, DQ) that our kernels use.
bool has_avx512();

/// AVX512-VNNI, products of bytes, besides these.
bool has_avx512_vnni();

/// AMX tile products of bfloat16 numbers, besides AVX-512, and the operating system's permission
/// for this process to touch tile registers. Thread safety: yes. The first call asks for it;
/// threads started later inherit the answer.
bool has_amx_bf16();

}  // namespace medusa
