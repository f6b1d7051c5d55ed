// Matrices in GGUF's block types with random quants and scales of a sensible size: any bytes are
// quants, only the half-precision scales must be chosen.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "backbone/files/dequantize.h"
#include "base/check.h"
#include "tests/backbone/seeded_fill.h"

namespace medusa {

/// Where a block's scales stand, and which of its second kind centres the numbers at 0.
struct ScalePlaces {
  int64_t scale = 0;         // byte of the scale
  int64_t offset = -1;       // byte of the offset's scale; -1: none
  double min_per_scale = 0;  // middle level, times -1 where the offset is added
};

inline ScalePlaces scale_places(GgmlType type) {
  switch (type) {
    case GgmlType::Q4_1:
      return {0, 2, -7.5};
    case GgmlType::Q5_1:
      return {0, 2, -15.5};
    case GgmlType::Q2_K:
      return {80, 82, 1.5};
    case GgmlType::Q3_K:
      return {108};
    case GgmlType::Q4_K:
      return {0, 2, 7.5};
    case GgmlType::Q5_K:
      return {0, 2, 15.5};
    case GgmlType::Q6_K:
      return {208};
    default:  // Q4_0, Q5_0, Q8_0, IQ4_NL, IQ4_XS
      return {};
  }
}

/// [n, bytes of a row] uint8, with scales that are this large.
inline at::Tensor random_blocks(GgmlType type, const std::string& name, int64_t n, int64_t k,
                                double scale) {
  const GgmlTypeInfo& info = ggml_type_info(type);
  MEDUSA_ASSERT(k % info.block_size == 0, k);
  const int64_t row_bytes = k / info.block_size * info.block_bytes;
  at::Tensor out = at::empty({n, row_bytes}, at::kByte);
  auto* bytes = out.data_ptr<uint8_t>();
  const uint64_t seed = seed_of_name(name);
  for (int64_t i = 0; i < out.numel(); ++i)
    bytes[i] = static_cast<uint8_t>(mix_bits(seed + static_cast<uint64_t>(i)) >> 40);
  const ScalePlaces places = scale_places(type);
  const at::Half first(static_cast<float>(scale));
  const at::Half second(static_cast<float>(scale * places.min_per_scale));
  for (uint8_t* block = bytes; block < bytes + out.numel(); block += info.block_bytes) {
    std::memcpy(block + places.scale, &first, 2);
    if (places.offset >= 0) std::memcpy(block + places.offset, &second, 2);
  }
  return out;
}

/// [n, k] float32: what the blocks stand for.
inline at::Tensor elements_of_quantized(GgmlType type, const at::Tensor& rows, int64_t k) {
  at::Tensor out = at::empty({rows.size(0), k}, at::kFloat);
  dequantize(type, {rows.const_data_ptr<uint8_t>(), rows.nbytes()},
             {out.data_ptr<float>(), static_cast<size_t>(out.numel())});
  return out;
}

/// Blocks whose numbers spread as widely as these.
inline at::Tensor blocks_like(GgmlType type, const std::string& name, const at::Tensor& elements) {
  const int64_t k = elements.size(1);
  const auto width = [](const at::Tensor& some) {
    return std::sqrt(some.pow(2).mean().item<double>());
  };
  const double unit =
      width(elements_of_quantized(type, random_blocks(type, name, elements.size(0), k, 1.0), k));
  return random_blocks(type, name, elements.size(0), k, width(elements) / unit);
}

}  // namespace medusa
