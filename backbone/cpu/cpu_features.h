// What the processor and the operating system let us use, asked once per process.
#pragma once

namespace medusa {

/// AVX2, fused multiply-add and F16C.
bool has_avx2();

/// The AVX-512 instructions (F, BW, VL, DQ) that our kernels use.
bool has_avx512();

/// AVX512-VNNI, products of bytes, besides these.
bool has_avx512_vnni();

/// AVX512-BF16, dot products of bfloat16 elements, besides these.
bool has_avx512_bf16();

/// Whether these do twice the work of multiply-adds: AMD's cores from Zen 4 on issue both once a
/// cycle (43 against 20 multiply-adds a nanosecond were measured, with a busy neighbor), Intel's
/// issue a dot product every second cycle and two multiply-adds in each.
bool dot_products_are_fast();

/// AMX tile products of bfloat16 elements, besides AVX-512, and the operating system's permission
/// for this process to touch tile registers. Thread safety: yes. The first call asks for it;
/// threads started later inherit the answer.
bool has_amx_bf16();

/// The same of bytes, besides AVX512-VNNI.
bool has_amx_int8();

/// All of these answers.
struct CpuFeatures {
  bool avx2 = false, avx512 = false, avx512_vnni = false, avx512_bf16 = false;
  bool dot_products_are_fast = false, amx_bf16 = false, amx_int8 = false;
};
CpuFeatures cpu_features();

}  // namespace medusa
