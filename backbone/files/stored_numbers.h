// Reading numbers from the bytes of a model file.
#pragma once

#include <c10/util/Half.h>

#include <cstdint>
#include <cstring>

namespace medusa {

template <typename T>
T load_stored(const uint8_t* at) {  // the file is little-endian, as every machine LibTorch runs on
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline float stored_half(const uint8_t* at) {
  return c10::Half(load_stored<uint16_t>(at), c10::Half::from_bits());
}

}  // namespace medusa
