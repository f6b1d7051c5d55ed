// GGUF's "K" types and IQ4_XS: 256 numbers share one or two half-precision scales, and each 16 or
// 32 of them a small scale of their own. Layouts as llama.cpp writes them.
#pragma once

#include <cstdint>

namespace medusa {

// Each decodes one superblock of 256 numbers. Only bytes are read: any alignment.
void q2_k(const uint8_t* block, float* out);    // 84 bytes
void q3_k(const uint8_t* block, float* out);    // 110
void q4_k(const uint8_t* block, float* out);    // 144
void q5_k(const uint8_t* block, float* out);    // 176
void q6_k(const uint8_t* block, float* out);    // 210
void iq4_xs(const uint8_t* block, float* out);  // 136

/// The sixteen values that a number of IQ4_NL and IQ4_XS stands for.
inline constexpr int8_t kUnevenLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                             1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace medusa
