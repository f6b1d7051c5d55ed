#include "backbone/superblocks.h"

#include "backbone/stored_numbers.h"

namespace medusa {
namespace {

constexpr int kHalfBlock = 128;  // numbers whose bits are interleaved with each other

/// Scale and minimum of 32 numbers.
struct SmallScale {
  int scale = 0, minimum = 0;
};

/// Q4_K and Q5_K: eight pairs of 6-bit numbers in 12 bytes. The first four scales and minima have
/// bytes of their own, whose two highest bits complete the last four.
SmallScale six_bit_pair(const uint8_t* packed, int i) {
  if (i < 4) return {packed[i] & 63, packed[i + 4] & 63};
  return {(packed[i + 4] & 15) | (packed[i - 4] >> 6) << 4, (packed[i + 4] >> 4) | (packed[i] >> 6)
                                                                                       << 4};
}

/// Q3_K: sixteen 6-bit scales in 12 bytes, four low bits in the first eight.
int six_bits(const uint8_t* packed, int i) {
  const int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
  return low | ((packed[8 + i % 4] >> (2 * (i / 4))) & 3) << 4;
}

}  // namespace

void q2_k(const uint8_t* block, float* out) {  // 16 scale bytes, 64 bytes, scale, minimum
  const uint8_t* bits = block + 16;
  const float scale = stored_half(block + 80), minimum = stored_half(block + 82);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 16;  // low half: scale, high half: minimum
    const int byte = bits[i / kHalfBlock * 32 + i % 32], shift = i % kHalfBlock / 32 * 2;
    out[i] =
        scale * static_cast<float>(block[group] & 15) * static_cast<float>((byte >> shift) & 3) -
        minimum * static_cast<float>(block[group] >> 4);
  }
}

void q3_k(const uint8_t* block, float* out) {  // 32 mask bytes, 64 bytes, 12 scale bytes, scale
  const uint8_t* bits = block + 32;
  const uint8_t* scales = block + 96;
  const float scale = stored_half(block + 108);
  for (int i = 0; i < 256; ++i) {
    const int byte = bits[i / kHalfBlock * 32 + i % 32], shift = i % kHalfBlock / 32 * 2;
    const int above = (block[i % 32] >> (i / 32)) & 1;  // a set bit: not four less
    const int number = ((byte >> shift) & 3) - (above != 0 ? 0 : 4);
    out[i] = scale * static_cast<float>(six_bits(scales, i / 16) - 32) * static_cast<float>(number);
  }
}

void q4_k(const uint8_t* block, float* out) {  // scale, minimum, 12 scale bytes, 128 bytes
  const float scale = stored_half(block), minimum = stored_half(block + 2);
  const uint8_t* bits = block + 16;
  for (int i = 0; i < 256; ++i) {
    const SmallScale small = six_bit_pair(block + 4, i / 32);
    const int byte = bits[i / 64 * 32 + i % 32];
    const int number = i % 64 < 32 ? byte & 15 : byte >> 4;
    out[i] = scale * static_cast<float>(small.scale) * static_cast<float>(number) -
             minimum * static_cast<float>(small.minimum);
  }
}

void q5_k(const uint8_t* block, float* out) {  // as Q4_K, with 32 bytes of fifth bits before
  const float scale = stored_half(block), minimum = stored_half(block + 2);
  const uint8_t* fifth = block + 16;
  const uint8_t* bits = block + 48;
  for (int i = 0; i < 256; ++i) {
    const SmallScale small = six_bit_pair(block + 4, i / 32);
    const int byte = bits[i / 64 * 32 + i % 32];
    const int number = (i % 64 < 32 ? byte & 15 : byte >> 4) | ((fifth[i % 32] >> (i / 32)) & 1)
                                                                   << 4;
    out[i] = scale * static_cast<float>(small.scale) * static_cast<float>(number) -
             minimum * static_cast<float>(small.minimum);
  }
}

void q6_k(const uint8_t* block, float* out) {  // 128 low bytes, 64 high, 16 signed scales, scale
  const float scale = stored_half(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / kHalfBlock, quarter = i % kHalfBlock / 32;  // 32 numbers each
    const int byte = block[half * 64 + quarter % 2 * 32 + i % 32];
    const int low = quarter < 2 ? byte & 15 : byte >> 4;
    const int high = (block[128 + half * 32 + i % 32] >> (2 * quarter)) & 3;
    const auto small = static_cast<int8_t>(block[192 + i / 16]);
    out[i] = scale * static_cast<float>(small) * static_cast<float>((low | high << 4) - 32);
  }
}

void iq4_xs(const uint8_t* block, float* out) {  // scale, 2 and 4 scale bytes, 128 bytes
  const float scale = stored_half(block);
  const auto high = load_stored<uint16_t>(block + 2);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 32;
    const int low = (block[4 + group / 2] >> (4 * (group % 2))) & 15;
    const int small = (low | ((high >> (2 * group)) & 3) << 4) - 32;
    const int byte = block[8 + group * 16 + i % 16];
    const int level = kUnevenLevels[i % 32 < 16 ? byte & 15 : byte >> 4];
    out[i] = scale * static_cast<float>(small) * static_cast<float>(level);
  }
}

}  // namespace medusa
