#include "backbone/cpu/cpu_kernels.h"

namespace medusa {

CpuIsa fastest_isa(const CpuFeatures& features, bool in_blocks) {
  if (in_blocks ? features.amx_int8 : features.amx_bf16) return CpuIsa::Amx;
  if (!in_blocks && features.dot_products_are_fast) return CpuIsa::Avx512Bf16;
  if (in_blocks ? features.avx512_vnni : features.avx512) return CpuIsa::Avx512;
  return features.avx2 ? CpuIsa::Avx2 : CpuIsa::Plain;
}

const CpuKernels* kernels_for(CpuIsa isa, bool in_blocks) {
  switch (isa) {
    case CpuIsa::Auto:
      return kernels_for(fastest_isa(cpu_features(), in_blocks), in_blocks);
    case CpuIsa::Amx:
      return in_blocks ? amx_block_kernels() : amx_kernels();
    case CpuIsa::Avx512Bf16:
      return in_blocks && has_avx512_bf16() ? vnni_kernels() : dot_kernels();
    case CpuIsa::Avx512:
      return in_blocks ? vnni_kernels() : avx512_kernels();
    case CpuIsa::Avx2:
      return in_blocks ? avx2_block_kernels() : avx2_kernels();
    case CpuIsa::Plain:
      break;
  }
  return in_blocks ? plain_block_kernels() : plain_kernels();
}

}  // namespace medusa
