// The AMX engine with its tile instructions written out as loops, so that the code which runs on
// AMX is tested on every machine with AVX-512. Compiled like the kernel files, without AMX; see
// tests/CMakeLists.txt. Meaning of the instructions: Intel 64 and IA-32 Architectures Software
// Developer's Manual, volume 2, LDTILECFG, TILELOADD, TDPBF16PS.
#define __AMX_BF16__ 1  // what amx_engine.h asks for

#include "backbone/cpu/avx512.h"

namespace medusa {
namespace {

struct EmulatedTile {
  alignas(64) uint32_t words[16][16];
};
thread_local EmulatedTile emulated_tiles[8];
thread_local bool emulated_configured = false;

inline float emulated_float(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// The tile instructions fault without a configuration; so does this.
inline EmulatedTile& emulated_tile(int i) {
  if (!emulated_configured) __builtin_trap();
  return emulated_tiles[i];
}

inline void emulated_load(int i, const void* base, long stride) {
  for (int r = 0; r < 16; ++r)
    __builtin_memcpy(emulated_tile(i).words[r], static_cast<const char*>(base) + r * stride, 64);
}

inline void emulated_store(int i, void* base, long stride) {
  for (int r = 0; r < 16; ++r)
    __builtin_memcpy(static_cast<char*>(base) + r * stride, emulated_tile(i).words[r], 64);
}

inline void emulated_dpbf16(int sums, int rows, int words) {
  EmulatedTile &c = emulated_tile(sums), &a = emulated_tile(rows), &b = emulated_tile(words);
  for (int m = 0; m < 16; ++m)
    for (int k = 0; k < 16; ++k)
      for (int n = 0; n < 16; ++n) {
        float sum = emulated_float(c.words[m][n]);
        sum += emulated_float(a.words[m][k] << 16) * emulated_float(b.words[k][n] << 16);
        sum += emulated_float(a.words[m][k] & 0xFFFF0000U) *
               emulated_float(b.words[k][n] & 0xFFFF0000U);
        __builtin_memcpy(&c.words[m][n], &sum, sizeof sum);
      }
}

}  // namespace
}  // namespace medusa

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig(config) (static_cast<void>(config), emulated_configured = true)
#define _tile_release() (emulated_configured = false)
#define _tile_zero(tile) (emulated_tile(tile) = EmulatedTile{})
#define _tile_loadd(tile, base, stride) emulated_load(tile, base, stride)
#define _tile_stored(tile, base, stride) emulated_store(tile, base, stride)
#define _tile_dpbf16ps(sums, rows, words) emulated_dpbf16(sums, rows, words)

#include "backbone/cpu/amx_engine.h"
#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/kernel_table.h"

namespace medusa {

const CpuKernels*
emulated_amx_kernels();  // also in cpu_engines.h, whose templates stay out of this file

const CpuKernels* emulated_amx_kernels() {
  return has_avx512() ? &kKernelTable<AmxEngine> : nullptr;
}

}  // namespace medusa
