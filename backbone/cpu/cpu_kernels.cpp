#include "backbone/cpu/cpu_kernels.h"

namespace medusa {

CpuEngine fastest_engine(const CpuFeatures& features, bool in_blocks) {
  if (in_blocks ? features.amx_int8 : features.amx_bf16) return CpuEngine::Amx;
  if (!in_blocks && features.dot_products_are_fast) return CpuEngine::Avx512Bf16;
  if (in_blocks ? features.avx512_vnni : features.avx512) return CpuEngine::Avx512;
  return features.avx2 ? CpuEngine::Avx2 : CpuEngine::Plain;
}

const CpuKernels* kernels_for(CpuEngine engine, bool in_blocks) {
  switch (engine) {
    case CpuEngine::Auto:
      return kernels_for(fastest_engine(cpu_features(), in_blocks), in_blocks);
    case CpuEngine::Amx:
      return in_blocks ? amx_block_kernels() : amx_kernels();
    case CpuEngine::Avx512Bf16:
      return in_blocks && has_avx512_bf16() ? vnni_kernels() : dot_kernels();
    case CpuEngine::Avx512:
      return in_blocks ? vnni_kernels() : avx512_kernels();
    case CpuEngine::Avx2:
      return in_blocks ? avx2_block_kernels() : avx2_kernels();
    case CpuEngine::Plain:
      break;
  }
  return in_blocks ? plain_block_kernels() : plain_kernels();
}

}  // namespace medusa
