#include "backbone/dequantise.h"

#include <c10/util/BFloat16.h>

#include <cstring>

#include "backbone/stored_numbers.h"
#include "backbone/superblocks.h"
#include "base/check.h"

namespace medusa {
namespace {

constexpr int kBlock = 32;

// One block each: bytes in, 32 numbers out. The 4-bit types keep number j in the low half of byte
// j and number j + 16 in the high half.

void q4_0(const uint8_t* block, float* out) {  // scale, 16 bytes
  const float scale = stored_half(block);
  for (int j = 0; j < kBlock / 2; ++j) {
    const int byte = block[2 + j];
    out[j] = scale * static_cast<float>((byte & 15) - 8);
    out[j + kBlock / 2] = scale * static_cast<float>((byte >> 4) - 8);
  }
}

void q4_1(const uint8_t* block, float* out) {  // scale, minimum, 16 bytes
  const float scale = stored_half(block), minimum = stored_half(block + 2);
  for (int j = 0; j < kBlock / 2; ++j) {
    const int byte = block[4 + j];
    out[j] = scale * static_cast<float>(byte & 15) + minimum;
    out[j + kBlock / 2] = scale * static_cast<float>(byte >> 4) + minimum;
  }
}

/// Number j of 32 five-bit ones: four bits from the bytes, the highest from bit j of a word.
int five_bits(uint32_t high, const uint8_t* bytes, int j) {
  const int low = j < kBlock / 2 ? bytes[j] & 15 : bytes[j - kBlock / 2] >> 4;
  return low | static_cast<int>((high >> j) & 1) << 4;
}

void q5_0(const uint8_t* block, float* out) {  // scale, 32 high bits, 16 bytes
  const float scale = stored_half(block);
  const auto high = load_stored<uint32_t>(block + 2);
  for (int j = 0; j < kBlock; ++j)
    out[j] = scale * static_cast<float>(five_bits(high, block + 6, j) - 16);
}

void q5_1(const uint8_t* block, float* out) {  // scale, minimum, 32 high bits, 16 bytes
  const float scale = stored_half(block), minimum = stored_half(block + 2);
  const auto high = load_stored<uint32_t>(block + 4);
  for (int j = 0; j < kBlock; ++j)
    out[j] = scale * static_cast<float>(five_bits(high, block + 8, j)) + minimum;
}

void q8_0(const uint8_t* block, float* out) {  // scale, 32 signed bytes
  const float scale = stored_half(block);
  for (int j = 0; j < kBlock; ++j)
    out[j] = scale * static_cast<float>(static_cast<int8_t>(block[2 + j]));
}

void iq4_nl(const uint8_t* block, float* out) {  // scale, 16 bytes
  const float scale = stored_half(block);
  for (int j = 0; j < kBlock / 2; ++j) {
    out[j] = scale * static_cast<float>(kUnevenLevels[block[2 + j] & 15]);
    out[j + kBlock / 2] = scale * static_cast<float>(kUnevenLevels[block[2 + j] >> 4]);
  }
}

void f16(const uint8_t* block, float* out) { *out = stored_half(block); }

void bf16(const uint8_t* block, float* out) {
  *out = c10::BFloat16(load_stored<uint16_t>(block), c10::BFloat16::from_bits());
}

using Decode = void (*)(const uint8_t* block, float* out);

Decode find_decode(GgmlType type) {
  switch (type) {
    case GgmlType::F16:
      return f16;
    case GgmlType::BF16:
      return bf16;
    case GgmlType::Q4_0:
      return q4_0;
    case GgmlType::Q4_1:
      return q4_1;
    case GgmlType::Q5_0:
      return q5_0;
    case GgmlType::Q5_1:
      return q5_1;
    case GgmlType::Q8_0:
      return q8_0;
    case GgmlType::Q2_K:
      return q2_k;
    case GgmlType::Q3_K:
      return q3_k;
    case GgmlType::Q4_K:
      return q4_k;
    case GgmlType::Q5_K:
      return q5_k;
    case GgmlType::Q6_K:
      return q6_k;
    case GgmlType::IQ4_NL:
      return iq4_nl;
    case GgmlType::IQ4_XS:
      return iq4_xs;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_dequantise(GgmlType type) { return type == GgmlType::F32 || find_decode(type) != nullptr; }

void dequantise(GgmlType type, std::span<const uint8_t> blocks, std::span<float> out) {
  MEDUSA_ASSERT(can_dequantise(type), ggml_type_info(type).name);
  const GgmlTypeInfo& info = ggml_type_info(type);
  const auto block_bytes = static_cast<size_t>(info.block_bytes);
  const auto block_size = static_cast<size_t>(info.block_size);
  const size_t count = blocks.size() / block_bytes;
  MEDUSA_ASSERT(blocks.size() == count * block_bytes && out.size() == count * block_size, info.name,
                blocks.size(), out.size());
  if (type == GgmlType::F32) {
    if (count > 0) std::memcpy(out.data(), blocks.data(), blocks.size());
    return;
  }
  const Decode decode = find_decode(type);
  for (size_t i = 0; i < count; ++i)
    decode(blocks.data() + i * block_bytes, out.data() + i * block_size);
}

}  // namespace medusa
