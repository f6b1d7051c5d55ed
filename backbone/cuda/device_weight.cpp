#include "backbone/cuda/device_weight.h"

#include <ATen/ATen.h>

#include "base/check.h"

namespace medusa {
namespace {

constexpr int64_t kBlock = 32;        // elements that share a scale
constexpr int64_t kMostSigned = 127;  // of int8
constexpr double kMiddleQuant = 128;  // which becomes int8's 0

/// Mins that differ from these by so many quants; nothing if half precision cannot say them.
std::optional<at::Tensor> moved_mins(const at::Tensor& mins, const at::Tensor& scales,
                                     const at::Tensor& quants) {
  // A half times so small a whole number, and the sum of two halves, are exact in float64.
  const at::Tensor exact = mins.to(at::kDouble) + scales.to(at::kDouble) * quants;
  at::Tensor rounded = exact.to(at::kHalf);
  if (!rounded.to(at::kDouble).equal(exact)) return std::nullopt;
  return rounded;
}

/// [n, k] quants to [n, k / 2].
at::Tensor pack_nibbles(const at::Tensor& quants) {
  const at::Tensor pairs = quants.view({quants.size(0), -1, 2});
  return pairs.select(2, 0).bitwise_or(pairs.select(2, 1) * 16);
}

bool place_nibbles(const QuantizedMatrix& weight, StoredDeviceWeight& out) {
  out.format = DeviceFormat::Nibbles4;
  out.elements = pack_nibbles(weight.quants);
  if (weight.format.has_mins) {
    out.mins = weight.mins;
    return true;
  }
  const at::Tensor zeros = at::zeros_like(weight.scales);
  const auto mins =
      moved_mins(zeros, weight.scales, at::full({}, -weight.format.zero(), at::kDouble));
  if (mins) out.mins = *mins;
  return mins.has_value();
}

bool place_quants(const QuantizedMatrix& weight, StoredDeviceWeight& out) {
  out.format = DeviceFormat::Int8;
  const int64_t n = weight.num_outputs();
  if (!weight.format.has_mins) {
    out.elements = weight.quants.bitwise_xor(0x80).view(at::kChar);  // less 128
    return true;
  }
  const at::Tensor blocks = weight.quants.view({n, -1, kBlock});
  const at::Tensor moves = blocks.amax(-1).gt(kMostSigned);  // [n, k / 32] or it stays as it is
  const auto mins = moved_mins(weight.mins, weight.scales, moves.to(at::kDouble) * kMiddleQuant);
  if (!mins) return false;
  const at::Tensor moved = blocks.bitwise_xor(moves.to(at::kByte).mul(0x80).unsqueeze(-1));
  out.elements = moved.view({n, -1}).view(at::kChar);
  out.mins = *mins;
  return true;
}

}  // namespace

DeviceWeight StoredDeviceWeight::view() const {
  const auto halves = [](const at::Tensor& of) {
    return of.defined() ? static_cast<const Half16*>(of.const_data_ptr()) : nullptr;
  };
  return {.format = format,
          .elements = elements.const_data_ptr(),
          .scales = halves(scales),
          .mins = halves(mins),
          .num_outputs = num_outputs(),
          .num_inputs = num_inputs};
}

std::optional<StoredDeviceWeight> device_weight(const at::Tensor& weight, at::Device device) {
  MEDUSA_ASSERT(weight.dim() == 2 && weight.size(0) > 0);
  if (weight.size(1) % kBlock != 0) return std::nullopt;
  return StoredDeviceWeight{.format = DeviceFormat::Bf16,
                            .elements = weight.to(device, at::kBFloat16).contiguous(),
                            .num_inputs = weight.size(1)};
}

std::optional<StoredDeviceWeight> device_weight(const QuantizedMatrix& weight, at::Device device) {
  if (weight.format.block != kBlock || weight.num_inputs % kBlock != 0) return std::nullopt;
  StoredDeviceWeight out{.scales = weight.scales, .num_inputs = weight.num_inputs};
  if (!(weight.format.bits == 4 ? place_nibbles(weight, out) : place_quants(weight, out)))
    return std::nullopt;
  for (at::Tensor* each : {&out.elements, &out.scales, &out.mins})
    if (each->defined()) *each = each->to(device).contiguous();
  return out;
}

}  // namespace medusa
