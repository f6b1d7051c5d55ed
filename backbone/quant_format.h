// How the numbers of a block weight are stored. No includes but one: kernel files read it too.
#pragma once

#include <cstdint>

namespace medusa {

/// A weight in blocks: numbers along k share a scale, and each is a small unsigned level.
///   number = scale · (level - zero())          without offsets
///   number = scale · level + offset            with offsets
struct QuantFormat {
  int32_t bits = 8;       // of a level: 4 or 8
  int32_t block = 32;     // numbers that share a scale: 16 or 32
  bool has_mins = false;  // besides the scale

  constexpr int32_t zero() const { return bits == 4 ? 8 : 128; }
  constexpr bool operator==(const QuantFormat&) const = default;
};

}  // namespace medusa
