#include "backbone/cpu/cpu_kernels.h"

namespace medusa {

CpuIsa fastest_isa(const CpuFeatures& features, bool quantized) {
  if (quantized ? features.amx_int8 : features.amx_bf16) return CpuIsa::Amx;
  if (!quantized && features.dot_products_are_fast) return CpuIsa::Avx512Bf16;
  if (quantized ? features.avx512_vnni : features.avx512) return CpuIsa::Avx512;
  return features.avx2 ? CpuIsa::Avx2 : CpuIsa::Portable;
}

const CpuKernels* kernels_for(CpuIsa isa, bool quantized) {
  switch (isa) {
    case CpuIsa::Auto:
      return kernels_for(fastest_isa(cpu_features(), quantized), quantized);
    case CpuIsa::Amx:
      return quantized ? amx_quant_kernels() : amx_kernels();
    case CpuIsa::Avx512Bf16:
      return quantized && has_avx512_bf16() ? vnni_kernels() : dot_kernels();
    case CpuIsa::Avx512:
      return quantized ? vnni_kernels() : avx512_kernels();
    case CpuIsa::Avx2:
      return quantized ? avx2_quant_kernels() : avx2_kernels();
    case CpuIsa::Portable:
      break;
  }
  return quantized ? portable_quant_kernels() : portable_kernels();
}

}  // namespace medusa
