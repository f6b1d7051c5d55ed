#include "backbone/files/dequantize.h"

#include <c10/util/BFloat16.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "backbone/files/block_decoders.h"
#include "backbone/quantized_matrix.h"
#include "base/check.h"

namespace medusa {
namespace {

/// One block (of a plain type: one number).
void decode(GgmlType type, const uint8_t* block, float* out) {
  if (type == GgmlType::F16) {
    *out = stored_half(block);
  } else if (type == GgmlType::BF16) {
    *out = c10::BFloat16(load_stored<uint16_t>(block), c10::BFloat16::from_bits());
  } else {
    blocks::decode(type, block, [out](int i, float scale, int quant, float offset) {
      out[i] = scale * static_cast<float>(quant) + offset;
    });
  }
}

float decode_fp8(int bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float size = 0;
  if (exponent == 15 && mantissa == 7)
    size = std::numeric_limits<float>::quiet_NaN();
  else if (exponent == 0)
    size = std::ldexp(static_cast<float>(mantissa), -9);
  else
    size = std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (bits & 128) != 0 ? -size : size;
}

const std::array<float, 256>& all_values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> out{};
    for (int bits = 0; bits < 256; ++bits) out[static_cast<size_t>(bits)] = decode_fp8(bits);
    return out;
  }();
  return values;
}

}  // namespace

bool can_dequantize(GgmlType type) {
  return type == GgmlType::F32 || type == GgmlType::F16 || type == GgmlType::BF16 ||
         quant_format(type).has_value();
}

void dequantize(GgmlType type, std::span<const uint8_t> blocks, std::span<float> out) {
  MEDUSA_ASSERT(can_dequantize(type), ggml_type_info(type).name);
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
  for (size_t i = 0; i < count; ++i)
    decode(type, blocks.data() + i * block_bytes, out.data() + i * block_size);
}

void decode_fp8_row(const Fp8Scales& scales, int64_t row, std::span<const uint8_t> bytes,
                    std::span<float> out) {
  MEDUSA_ASSERT(bytes.size() == out.size(), bytes.size(), out.size());
  const std::array<float, 256>& values = all_values();
  for (size_t i = 0; i < bytes.size(); ++i) out[i] = values[bytes[i]];
  if (scales.scales.empty()) return;
  const size_t block = kFp8Block, in_row = (bytes.size() + block - 1) / block;
  const size_t first = static_cast<size_t>(row) / block * in_row;
  MEDUSA_ASSERT(first + in_row <= scales.scales.size(), row, scales.scales.size());
  for (size_t i = 0; i < bytes.size(); ++i) out[i] *= scales.scales[first + i / block];
}

}  // namespace medusa
