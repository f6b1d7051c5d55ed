#include "backbone/files/dequantise.h"

#include <c10/util/BFloat16.h>

#include <cstring>

#include "backbone/block_matrix.h"
#include "backbone/files/block_decoders.h"
#include "backbone/files/stored_numbers.h"
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
    blocks::decode(type, block, [out](int i, float scale, int level, float offset) {
      out[i] = scale * static_cast<float>(level) + offset;
    });
  }
}

}  // namespace

bool can_dequantise(GgmlType type) {
  return type == GgmlType::F32 || type == GgmlType::F16 || type == GgmlType::BF16 ||
         block_format(type).has_value();
}

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
  for (size_t i = 0; i < count; ++i)
    decode(type, blocks.data() + i * block_bytes, out.data() + i * block_size);
}

}  // namespace medusa
