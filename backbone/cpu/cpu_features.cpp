#include "backbone/cpu/cpu_features.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace medusa {
namespace {

// arch_prctl(2): the tile registers are 8 KB of state per thread, so a process has to ask.
constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
constexpr int kTileData = 18;               // XFEATURE_XTILEDATA

/// Tiles, and products of what the bit stands for.
bool processor_has_amx(unsigned feature_bit) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  constexpr unsigned kAmxTile = 1U << 24;
  return (edx & feature_bit) != 0 && (edx & kAmxTile) != 0;
}

constexpr unsigned kAmxBf16 = 1U << 22, kAmxInt8 = 1U << 25;

/// Asks for the tile registers, once.
bool may_use_tiles() {
  static const bool answer = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return answer;
}

/// F16C, which compilers do not name in __builtin_cpu_supports().
bool processor_upcasts_halves() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kF16c = 1U << 29;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & kF16c) != 0;
}

}  // namespace

bool has_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         processor_upcasts_halves();
}

bool has_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

bool has_avx512_vnni() { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }

bool has_avx512_bf16() { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }

bool dot_products_are_fast() { return has_avx512_bf16() && __builtin_cpu_is("amd"); }

bool has_amx_bf16() {
  static const bool answer = has_avx512() && processor_has_amx(kAmxBf16) && may_use_tiles();
  return answer;
}

bool has_amx_int8() {
  static const bool answer = has_avx512_vnni() && processor_has_amx(kAmxInt8) && may_use_tiles();
  return answer;
}

CpuFeatures cpu_features() {
  return {
      has_avx2(),     has_avx512(),  has_avx512_vnni(), has_avx512_bf16(), dot_products_are_fast(),
      has_amx_bf16(), has_amx_int8()};
}

}  // namespace medusa
