// Tile instructions written out as loops, in place of the compiler's. Meaning: Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 2, LDTILECFG, TILELOADD, TDPBF16PS, TDPBSSD.
// For emulated_amx*.cpp only.
#pragma once

#include "backbone/cpu/simd/avx512.h"

namespace medusa {
namespace {

struct EmulatedTile {
  alignas(64) uint32_t words[16][16];
};
struct EmulatedConfig {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
thread_local EmulatedTile emulated_tiles[8];
thread_local EmulatedConfig emulated_config{};  // palette 0: none

inline void emulated_configure(const void* config) {
  __builtin_memcpy(&emulated_config, config, sizeof emulated_config);
  for (EmulatedTile& tile : emulated_tiles) tile = EmulatedTile{};
}

// The tile instructions fault without a configuration; so does this.
inline EmulatedTile& emulated_tile(int i) {
  if (emulated_config.palette != 1 || emulated_config.rows[i] == 0) __builtin_trap();
  return emulated_tiles[i];
}

inline void emulated_load(int i, const void* base, long stride) {
  EmulatedTile loaded{};  // zeros behind the tile's rows and columns
  for (int r = 0; r < emulated_config.rows[i]; ++r)
    __builtin_memcpy(loaded.words[r], static_cast<const char*>(base) + r * stride,
                     emulated_config.row_bytes[i]);
  emulated_tile(i) = loaded;
}

inline void emulated_store(int i, void* base, long stride) {
  for (int r = 0; r < emulated_config.rows[i]; ++r)
    __builtin_memcpy(static_cast<char*>(base) + r * stride, emulated_tile(i).words[r],
                     emulated_config.row_bytes[i]);
}

/// Calls add(sum, word of a row, word of the columns) for each of the sums' terms.
template <typename Add>
void emulated_gemm(int sums, int rows, int words, const Add& add) {
  EmulatedTile &c = emulated_tile(sums), &a = emulated_tile(rows), &b = emulated_tile(words);
  if (emulated_config.rows[sums] != emulated_config.rows[rows] ||
      emulated_config.row_bytes[sums] != emulated_config.row_bytes[words] ||
      emulated_config.row_bytes[rows] != emulated_config.rows[words] * 4)
    __builtin_trap();
  for (int m = 0; m < emulated_config.rows[sums]; ++m)
    for (int k = 0; k < emulated_config.rows[words]; ++k)
      for (int n = 0; n < emulated_config.row_bytes[sums] / 4; ++n)
        add(c.words[m][n], a.words[m][k], b.words[k][n]);
}

inline float emulated_float(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

inline void emulated_dpbf16(int sums, int rows, int words) {
  emulated_gemm(sums, rows, words, [](uint32_t& to, uint32_t a, uint32_t b) {
    float sum = emulated_float(to);
    sum += emulated_float(a << 16) * emulated_float(b << 16);
    sum += emulated_float(a & 0xFFFF0000U) * emulated_float(b & 0xFFFF0000U);
    __builtin_memcpy(&to, &sum, sizeof sum);
  });
}

/// @param Level  of the columns: int8_t or uint8_t; those of rows are signed.
template <typename Level>
void emulated_dpbytes(int sums, int rows, int words) {
  emulated_gemm(sums, rows, words, [](uint32_t& to, uint32_t a, uint32_t b) {
    for (int byte = 0; byte < 32; byte += 8)
      to += static_cast<uint32_t>(static_cast<int8_t>(a >> byte) * static_cast<Level>(b >> byte));
  });
}

}  // namespace
}  // namespace medusa

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_dpbsud
#undef _tile_dpbssd
#define _tile_loadconfig(config) emulated_configure(config)
#define _tile_release() (emulated_config.palette = 0)
#define _tile_zero(tile) (emulated_tile(tile) = EmulatedTile{})
#define _tile_loadd(tile, base, stride) emulated_load(tile, base, stride)
#define _tile_stored(tile, base, stride) emulated_store(tile, base, stride)
#define _tile_dpbf16ps(sums, rows, words) emulated_dpbf16(sums, rows, words)
#define _tile_dpbsud(sums, rows, words) emulated_dpbytes<uint8_t>(sums, rows, words)
#define _tile_dpbssd(sums, rows, words) emulated_dpbytes<int8_t>(sums, rows, words)
