// Hidden states as a dataset keeps them: a row is one token's state.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/fields.h"

namespace medusa {

/// How the numbers of recorded states are stored.
enum class StateFormat {
  Bfloat16,  // as decoding computed them
  Int8,      // rounded to 255 levels of the row's largest number: half the room
};

template <>
struct EnumNames<StateFormat> {
  static constexpr std::array<std::pair<const char*, StateFormat>, 2> values{
      {{"bfloat16", StateFormat::Bfloat16}, {"int8", StateFormat::Int8}}};
};

/// Bytes that the state of one token takes.
/// @param width  H.
constexpr int64_t state_row_bytes(StateFormat format, int64_t width) {
  return format == StateFormat::Int8 ? width + int64_t{sizeof(float)}
                                     : width * int64_t{sizeof(uint16_t)};
}

struct Int8Rows {
  std::vector<int8_t> levels;  // [R, H], -127 to 127
  std::vector<float> scales;   // [R]; a number is its level times its row's scale
};

/// @param rows  bfloat16 bits [R, width]. Numbers that are none, or too large, make the whole row
///              none, so that training says so as it does of unrounded states.
Int8Rows round_rows(std::span<const uint16_t> rows, int64_t width);

/// @param levels  [R, H] of as many rows as there are scales.
/// @param out     bfloat16 bits [R, H].
void unround_rows(std::span<const int8_t> levels, std::span<const float> scales,
                  std::span<uint16_t> out);

}  // namespace medusa
