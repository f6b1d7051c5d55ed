#include "backbone/cuda/device_weight.h"

#include <ATen/ATen.h>

#include "base/check.h"

namespace medusa {
namespace {

constexpr int64_t kBlock = 32;        // numbers that share a scale
constexpr int64_t kMostSigned = 127;  // of int8
constexpr double kMiddleLevel = 128;  // which becomes int8's 0

/// Offsets that differ from these by so many levels; nothing if half precision cannot say them.
std::optional<at::Tensor> moved_offsets(const at::Tensor& offsets, const at::Tensor& scales,
                                        const at::Tensor& levels) {
  // A half times so small a whole number, and the sum of two halves, are exact in float64.
  const at::Tensor exact = offsets.to(at::kDouble) + scales.to(at::kDouble) * levels;
  at::Tensor rounded = exact.to(at::kHalf);
  if (!rounded.to(at::kDouble).equal(exact)) return std::nullopt;
  return rounded;
}

/// [n, k] levels to [n, k / 2].
at::Tensor pack_nibbles(const at::Tensor& levels) {
  const at::Tensor pairs = levels.view({levels.size(0), -1, 2});
  return pairs.select(2, 0).bitwise_or(pairs.select(2, 1) * 16);
}

bool place_nibbles(const BlockMatrix& weight, StoredDeviceWeight& out) {
  out.format = DeviceFormat::Nibbles4;
  out.numbers = pack_nibbles(weight.levels);
  if (weight.format.has_offsets) {
    out.offsets = weight.offsets;
    return true;
  }
  const at::Tensor zeros = at::zeros_like(weight.scales);
  const auto offsets =
      moved_offsets(zeros, weight.scales, at::full({}, -weight.format.zero(), at::kDouble));
  if (offsets) out.offsets = *offsets;
  return offsets.has_value();
}

bool place_levels(const BlockMatrix& weight, StoredDeviceWeight& out) {
  out.format = DeviceFormat::Levels8;
  const int64_t n = weight.num_outputs();
  if (!weight.format.has_offsets) {
    out.numbers = weight.levels.bitwise_xor(0x80).view(at::kChar);  // less 128
    return true;
  }
  const at::Tensor blocks = weight.levels.view({n, -1, kBlock});
  const at::Tensor moves = blocks.amax(-1).gt(kMostSigned);  // [n, k / 32] or it stays as it is
  const auto offsets =
      moved_offsets(weight.offsets, weight.scales, moves.to(at::kDouble) * kMiddleLevel);
  if (!offsets) return false;
  const at::Tensor moved = blocks.bitwise_xor(moves.to(at::kByte).mul(0x80).unsqueeze(-1));
  out.numbers = moved.view({n, -1}).view(at::kChar);
  out.offsets = *offsets;
  return true;
}

}  // namespace

DeviceWeight StoredDeviceWeight::view() const {
  const auto halves = [](const at::Tensor& of) {
    return of.defined() ? static_cast<const Half16*>(of.const_data_ptr()) : nullptr;
  };
  return {.format = format,
          .numbers = numbers.const_data_ptr(),
          .scales = halves(scales),
          .offsets = halves(offsets),
          .num_outputs = num_outputs(),
          .num_inputs = num_inputs};
}

std::optional<StoredDeviceWeight> device_weight(const at::Tensor& weight, at::Device device) {
  MEDUSA_ASSERT(weight.dim() == 2 && weight.size(0) > 0);
  if (weight.size(1) % kBlock != 0) return std::nullopt;
  return StoredDeviceWeight{.format = DeviceFormat::Bf16,
                            .numbers = weight.to(device, at::kBFloat16).contiguous(),
                            .num_inputs = weight.size(1)};
}

std::optional<StoredDeviceWeight> device_weight(const BlockMatrix& weight, at::Device device) {
  if (weight.format.block != kBlock || weight.num_inputs % kBlock != 0) return std::nullopt;
  StoredDeviceWeight out{.scales = weight.scales, .num_inputs = weight.num_inputs};
  if (!(weight.format.bits == 4 ? place_nibbles(weight, out) : place_levels(weight, out)))
    return std::nullopt;
  for (at::Tensor* each : {&out.numbers, &out.scales, &out.offsets})
    if (each->defined()) *each = each->to(device).contiguous();
  return out;
}

}  // namespace medusa
