// GGUF's block types, number by number: what a block of bytes stands for, without deciding what it
// becomes. Layouts as llama.cpp writes them. dequantize.cpp makes float32 of it,
// quantized_matrix.cpp quants and scales.
//
// Each decoder calls sink(i, scale, quant, min) for every number i of one block; the number is
// scale · quant + min. Only bytes are read: any alignment.
#pragma once

#include <c10/util/Half.h>

#include <cstdint>
#include <cstring>

#include "base/formats/ggml_type.h"

namespace medusa {

template <typename T>
T load_stored(const uint8_t* at) {  // the file is little-endian, as every machine LibTorch runs on
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline float stored_half(const uint8_t* at) {
  return c10::Half(load_stored<uint16_t>(at), c10::Half::from_bits());
}

}  // namespace medusa

namespace medusa::blocks {

constexpr int kBlock = 32;        // numbers of a plain block
constexpr int kSuperblock = 256;  // of a "K" type and IQ4_XS
constexpr int kHalfBlock = 128;   // of a superblock: numbers whose bits are interleaved

constexpr float kNoMin = -0.0F;  // adding it changes no number, not even the sign of a zero

/// The sixteen quants of IQ4_NL and IQ4_XS.
inline constexpr int8_t kUnevenQuants[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                             1,    13,   25,  38,  53,  69,  89,  113};

/// The 4-bit types keep number j in the low half of byte j and number j + 16 in the high half.
inline int four_bits(const uint8_t* bytes, int j) {
  return j < kBlock / 2 ? bytes[j] & 15 : bytes[j - kBlock / 2] >> 4;
}

template <typename Sink>
void q4_0(const uint8_t* block, const Sink& sink) {  // scale, 16 bytes
  const float scale = stored_half(block);
  for (int i = 0; i < kBlock; ++i) sink(i, scale, four_bits(block + 2, i) - 8, kNoMin);
}

template <typename Sink>
void q4_1(const uint8_t* block, const Sink& sink) {  // scale, minimum, 16 bytes
  const float scale = stored_half(block), minimum = stored_half(block + 2);
  for (int i = 0; i < kBlock; ++i) sink(i, scale, four_bits(block + 4, i), minimum);
}

template <typename Sink>
void q5_0(const uint8_t* block, const Sink& sink) {  // scale, 32 fifth bits, 16 bytes
  const float scale = stored_half(block);
  const auto fifth = load_stored<uint32_t>(block + 2);
  for (int i = 0; i < kBlock; ++i)
    sink(i, scale, (four_bits(block + 6, i) | static_cast<int>((fifth >> i) & 1) << 4) - 16,
         kNoMin);
}

template <typename Sink>
void q5_1(const uint8_t* block, const Sink& sink) {  // scale, minimum, 32 fifth bits, 16 bytes
  const float scale = stored_half(block), minimum = stored_half(block + 2);
  const auto fifth = load_stored<uint32_t>(block + 4);
  for (int i = 0; i < kBlock; ++i)
    sink(i, scale, four_bits(block + 8, i) | static_cast<int>((fifth >> i) & 1) << 4, minimum);
}

template <typename Sink>
void q8_0(const uint8_t* block, const Sink& sink) {  // scale, 32 signed bytes
  const float scale = stored_half(block);
  for (int i = 0; i < kBlock; ++i) sink(i, scale, static_cast<int8_t>(block[2 + i]), kNoMin);
}

template <typename Sink>
void iq4_nl(const uint8_t* block, const Sink& sink) {  // scale, 16 bytes
  const float scale = stored_half(block);
  for (int i = 0; i < kBlock; ++i) sink(i, scale, kUnevenQuants[four_bits(block + 2, i)], kNoMin);
}

/// Scale and minimum of 32 elements of a superblock.
struct SmallScale {
  int scale = 0, minimum = 0;
};

/// Q4_K and Q5_K: eight pairs of 6-bit numbers in 12 bytes. The first four scales and minima have
/// bytes of their own, whose two highest bits complete the last four.
inline SmallScale six_bit_pair(const uint8_t* packed, int i) {
  if (i < 4) return {packed[i] & 63, packed[i + 4] & 63};
  return {(packed[i + 4] & 15) | (packed[i - 4] >> 6) << 4, (packed[i + 4] >> 4) | (packed[i] >> 6)
                                                                                       << 4};
}

/// Q3_K: sixteen 6-bit scales in 12 bytes, four low bits in the first eight.
inline int six_bits(const uint8_t* packed, int i) {
  const int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
  return low | ((packed[8 + i % 4] >> (2 * (i / 4))) & 3) << 4;
}

/// Q2_K and Q3_K: number i's two bits.
inline int two_bits(const uint8_t* bytes, int i) {
  return (bytes[i / kHalfBlock * 32 + i % 32] >> (i % kHalfBlock / 32 * 2)) & 3;
}

template <typename Sink>
void q2_k(const uint8_t* block, const Sink& sink) {  // 16 scale bytes, 64 bytes, scale, minimum
  const float scale = stored_half(block + 80), minimum = stored_half(block + 82);
  for (int i = 0; i < kSuperblock; ++i) {
    const int small = block[i / 16];  // low half: scale, high half: minimum
    sink(i, scale * static_cast<float>(small & 15), two_bits(block + 16, i),
         -(minimum * static_cast<float>(small >> 4)));
  }
}

template <typename Sink>
void q3_k(const uint8_t* block, const Sink& sink) {  // 32 mask bytes, 64, 12 scale bytes, scale
  const float scale = stored_half(block + 108);
  for (int i = 0; i < kSuperblock; ++i) {
    const int above = (block[i % 32] >> (i / 32)) & 1;  // a set bit: not four less
    sink(i, scale * static_cast<float>(six_bits(block + 96, i / 16) - 32),
         two_bits(block + 32, i) - (above != 0 ? 0 : 4), kNoMin);
  }
}

template <typename Sink>
void q4_k(const uint8_t* block, const Sink& sink) {  // scale, minimum, 12 scale bytes, 128 bytes
  const float scale = stored_half(block), minimum = stored_half(block + 2);
  for (int i = 0; i < kSuperblock; ++i) {
    const SmallScale small = six_bit_pair(block + 4, i / 32);
    const int byte = block[16 + i / 64 * 32 + i % 32];
    sink(i, scale * static_cast<float>(small.scale), i % 64 < 32 ? byte & 15 : byte >> 4,
         -(minimum * static_cast<float>(small.minimum)));
  }
}

template <typename Sink>
void q5_k(const uint8_t* block, const Sink& sink) {  // as Q4_K, 32 bytes of fifth bits before
  const float scale = stored_half(block), minimum = stored_half(block + 2);
  for (int i = 0; i < kSuperblock; ++i) {
    const SmallScale small = six_bit_pair(block + 4, i / 32);
    const int byte = block[48 + i / 64 * 32 + i % 32];
    const int fifth = (block[16 + i % 32] >> (i / 32)) & 1;
    sink(i, scale * static_cast<float>(small.scale),
         (i % 64 < 32 ? byte & 15 : byte >> 4) | fifth << 4,
         -(minimum * static_cast<float>(small.minimum)));
  }
}

template <typename Sink>
void q6_k(const uint8_t* block, const Sink& sink) {  // 128 low, 64 high bytes, 16 scales, scale
  const float scale = stored_half(block + 208);
  for (int i = 0; i < kSuperblock; ++i) {
    const int half = i / kHalfBlock, quarter = i % kHalfBlock / 32;  // 32 elements each
    const int byte = block[half * 64 + quarter % 2 * 32 + i % 32];
    const int low = quarter < 2 ? byte & 15 : byte >> 4;
    const int high = (block[128 + half * 32 + i % 32] >> (2 * quarter)) & 3;
    const auto small = static_cast<int8_t>(block[192 + i / 16]);
    sink(i, scale * static_cast<float>(small), (low | high << 4) - 32, kNoMin);
  }
}

template <typename Sink>
void iq4_xs(const uint8_t* block, const Sink& sink) {  // scale, 2 and 4 scale bytes, 128 bytes
  const float scale = stored_half(block);
  const auto high = load_stored<uint16_t>(block + 2);
  for (int i = 0; i < kSuperblock; ++i) {
    const int group = i / 32;
    const int low = (block[4 + group / 2] >> (4 * (group % 2))) & 15;
    const int small = (low | ((high >> (2 * group)) & 3) << 4) - 32;
    sink(i, scale * static_cast<float>(small),
         kUnevenQuants[four_bits(block + 8 + group * 16, i % 32)], kNoMin);
  }
}

/// @returns  false for a type that is not one of the above.
template <typename Sink>
bool decode(GgmlType type, const uint8_t* block, const Sink& sink) {
  switch (type) {
    case GgmlType::Q4_0:
      return q4_0(block, sink), true;
    case GgmlType::Q4_1:
      return q4_1(block, sink), true;
    case GgmlType::Q5_0:
      return q5_0(block, sink), true;
    case GgmlType::Q5_1:
      return q5_1(block, sink), true;
    case GgmlType::Q8_0:
      return q8_0(block, sink), true;
    case GgmlType::Q2_K:
      return q2_k(block, sink), true;
    case GgmlType::Q3_K:
      return q3_k(block, sink), true;
    case GgmlType::Q4_K:
      return q4_k(block, sink), true;
    case GgmlType::Q5_K:
      return q5_k(block, sink), true;
    case GgmlType::Q6_K:
      return q6_k(block, sink), true;
    case GgmlType::IQ4_NL:
      return iq4_nl(block, sink), true;
    case GgmlType::IQ4_XS:
      return iq4_xs(block, sink), true;
    default:
      return false;
  }
}

}  // namespace medusa::blocks
