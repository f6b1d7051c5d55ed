// CRC-32C (Castagnoli), the checksum of event files' records.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace medusa {

/// Of the bytes of a text.
inline uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78U : 0);
      table[i] = value;
    }
    return table;
  }();
  uint32_t crc = ~uint32_t{0};
  for (const char each : bytes)
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(each)) & 0xffU];
  return ~crc;
}

}  // namespace medusa
