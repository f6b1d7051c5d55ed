// How the numbers of a quantized weight are stored. No includes but one: kernel files read it too.
#pragma once

#include <cstdint>

namespace medusa {

/// A weight in blocks: elements along k share a scale, and each is a small unsigned integer, its
/// quant.
///   number = scale · (quant - zero())          without mins
///   number = scale · quant + min               with mins
struct QuantFormat {
  int32_t bits = 8;       // of a quant: 4 or 8
  int32_t block = 32;     // elements that share a scale: 16 or 32
  bool has_mins = false;  // besides the scale

  constexpr int32_t zero() const { return bits == 4 ? 8 : 128; }
  constexpr bool operator==(const QuantFormat&) const = default;
};

/// The least largest number of a row's block: smaller ones are taken as zeros, since 127 over them
/// is no number.
inline constexpr float kLeastRowBlock = 0x1p-110F;

}  // namespace medusa
