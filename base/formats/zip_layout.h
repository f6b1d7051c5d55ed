// Where things stand in a zip archive: the numbers that zip_file.cpp and zip_writer.cpp share.
// Source: PKWARE's APPNOTE, sections 4.3 and 4.5.3. All numbers are little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace medusa::zip {

inline constexpr uint32_t kLocalHeader = 0x04034b50;
inline constexpr uint32_t kDirectoryEntry = 0x02014b50;
inline constexpr uint32_t kEndOfDirectory = 0x06054b50;
inline constexpr uint32_t kWideEnd = 0x06064b50;         // of archives past 4 GiB
inline constexpr uint32_t kWideEndLocator = 0x07064b50;  // stands right before kEndOfDirectory
inline constexpr size_t kLocalHeaderBytes = 30;
inline constexpr size_t kDirectoryEntryBytes = 46;
inline constexpr size_t kEndBytes = 22;
inline constexpr size_t kWideEndBytes = 56;
inline constexpr size_t kWideEndLocatorBytes = 20;
inline constexpr uint16_t kWideExtra = 1;          // extra field with sizes of 64 bits
inline constexpr uint16_t kPaddingExtra = 0x4246;  // "FB", as torch.save pads
inline constexpr uint32_t kSeeWide = 0xffffffff;   // in place of a number of 32 bits

/// CRC-32 of bytes that follow those that gave `crc` (0 at the start).
inline uint32_t checksum(std::span<const uint8_t> bytes, uint32_t crc = 0) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = (value >> 1) ^ ((value & 1U) != 0 ? 0xedb88320U : 0U);
      entries[i] = value;
    }
    return entries;
  }();
  crc = ~crc;
  for (const uint8_t byte : bytes) crc = (crc >> 8) ^ table[(crc ^ byte) & 0xffU];
  return ~crc;
}

}  // namespace medusa::zip
